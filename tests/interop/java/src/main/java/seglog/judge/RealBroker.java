package seglog.judge;

import java.util.Base64;
import java.util.HashMap;
import java.util.Map;
import org.apache.rocketmq.broker.BrokerController;
import org.apache.rocketmq.common.BrokerConfig;
import org.apache.rocketmq.common.MQVersion;
import org.apache.rocketmq.common.namesrv.NamesrvConfig;
import org.apache.rocketmq.namesrv.NamesrvController;
import org.apache.rocketmq.namesrv.routeinfo.RouteInfoManager;
import org.apache.rocketmq.remoting.common.TlsMode;
import org.apache.rocketmq.remoting.netty.NettyClientConfig;
import org.apache.rocketmq.remoting.netty.NettyRemotingClient;
import org.apache.rocketmq.remoting.netty.NettyServerConfig;
import org.apache.rocketmq.remoting.netty.TlsSystemConfig;
import org.apache.rocketmq.remoting.protocol.RemotingCommand;

/** A started BrokerController, a name server if it is wanted, and clients, on the loopback device. */
final class RealBroker implements AutoCloseable {
  private static final String ADDRESS = "127.0.0.1";

  /**
   * How often a broker saves what it counts of transactions: for so long it asks for the time
   * without a pause when it begins, three seconds by default.
   */
  private static final long METRICS_MS = 100;

  private final BrokerController controller;
  private final Map<String, NettyRemotingClient> clients = new HashMap<>();

  private NamesrvController nameServer;

  /** RocketMQ's own clients; they find the broker through the name server. */
  final Members members;

  private RealBroker(BrokerController controller, NamesrvController nameServer) {
    this.controller = controller;
    this.nameServer = nameServer;
    this.members = new Members(ADDRESS + ":" + nameServerPort());
  }

  /** Starts a broker on the directory of the request; it listens on any free port unless one is named. */
  static RealBroker start(Request request) throws Exception {
    // The start scripts' main classes do this. Without it all requests of this process are of version 0, and
    // the name server takes the topics of a broker so old out of another body: it knows none.
    System.setProperty(
        RemotingCommand.REMOTING_VERSION_KEY, Integer.toString(MQVersion.CURRENT_VERSION));
    // Each server would make itself a key and a certificate, which takes longer than all the rest.
    TlsSystemConfig.tlsMode = TlsMode.DISABLED;
    BrokerConfig config = new BrokerConfig();
    config.setBrokerIP1(ADDRESS);
    config.setBrokerIP2(ADDRESS);
    config.setListenPort(0);
    config.setEnableDetailStat(false);
    config.setTransactionMetricFlushInterval(METRICS_MS);
    RealStore.applyFurther(config, request.broker);
    NamesrvController nameServer =
        request.nameServer ? startNameServer(request.nameServerPort) : null;
    if (nameServer != null) {
      config.setNamesrvAddr(ADDRESS + ":" + nameServer.getNettyServerConfig().getListenPort());
    }
    NettyServerConfig server = loopback(config.getListenPort());
    BrokerController controller =
        new BrokerController(config, server, new NettyClientConfig(), RealStore.configure(request));
    if (!controller.initialize()) {
      throw new IllegalStateException("initialize() returned false");
    }
    controller.start();
    if (nameServer != null) {
      awaitRegistration(controller, nameServer);
    }
    return new RealBroker(controller, nameServer);
  }

  /** The first registration is lost where the connection is not there yet; the next is ten seconds away. */
  private static void awaitRegistration(BrokerController controller, NamesrvController nameServer)
      throws InterruptedException {
    RouteInfoManager routes = nameServer.getRouteInfoManager();
    while (routes.getAllClusterInfo().getBrokerAddrTable().isEmpty()) {
      Thread.sleep(50);
      controller.registerBrokerAll(true, false, true);
    }
  }

  private static NettyServerConfig loopback(int port) {
    NettyServerConfig server = new NettyServerConfig();
    server.setBindAddress(ADDRESS);
    server.setListenPort(port);
    return server;
  }

  private static NamesrvController startNameServer(int port) throws Exception {
    NamesrvController nameServer = new NamesrvController(new NamesrvConfig(), loopback(port));
    if (!nameServer.initialize()) {
      throw new IllegalStateException("initialize() of the name server returned false");
    }
    nameServer.start();
    return nameServer;
  }

  /**
   * Ends the name server, and starts another one at its port after a time. That one knows no topic
   * before a broker registers.
   */
  void restartNameServer(long awayMs) throws Exception {
    int port = nameServerPort();
    nameServer.shutdown();
    Thread.sleep(awayMs);
    nameServer = startNameServer(port);
  }

  /** Where the name server listens; 0 without one. */
  int nameServerPort() {
    return nameServer == null ? 0 : nameServer.getNettyServerConfig().getListenPort();
  }

  int port() {
    return controller.getNettyServerConfig().getListenPort();
  }

  /**
   * Sends the request on the connection of its client, and puts the answer.
   *
   * <p>What was stored is in its queue by then: the broker itself gets there a moment later.
   */
  void ask(Request request, Answers answers) throws Exception {
    RemotingCommand command = RemotingCommand.createRequestCommand(request.code, null);
    command.setVersion(MQVersion.CURRENT_VERSION);
    command.setExtFields(new HashMap<>(request.ext));
    if (request.body != null) {
      command.setBody(Base64.getDecoder().decode(request.body));
    }
    RemotingCommand answer =
        client(request.client).invokeSync(ADDRESS + ":" + port(), command, request.timeoutMs);
    while (controller.getMessageStore().dispatchBehindBytes() != 0) {
      Thread.sleep(1);
    }
    byte[] body = answer.getBody();
    answers
        .line("answer")
        .put("code", answer.getCode())
        .put("remark", answer.getRemark())
        .put("ext", answer.getExtFields())
        .put("body", body == null ? null : Base64.getEncoder().encodeToString(body))
        .send();
  }

  private NettyRemotingClient client(String name) {
    return clients.computeIfAbsent(
        name,
        ignored -> {
          NettyRemotingClient client = new NettyRemotingClient(new NettyClientConfig());
          client.start();
          return client;
        });
  }

  /** Shuts the broker down as its own exit hook does. */
  @Override
  public void close() throws InterruptedException {
    try (Hurry hurry = Hurry.begin()) {
      members.close();
      clients.values().forEach(NettyRemotingClient::shutdown);
      controller.shutdown();
      if (nameServer != null) {
        nameServer.shutdown();
      }
    }
  }
}
