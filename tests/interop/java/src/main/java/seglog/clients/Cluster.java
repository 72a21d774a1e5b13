package seglog.clients;

import java.util.Properties;
import java.util.concurrent.Callable;
import org.apache.rocketmq.client.exception.MQClientException;
import org.apache.rocketmq.common.TopicConfig;
import org.apache.rocketmq.tools.admin.DefaultMQAdminExt;

/** Where clients find their broker, and how its topics are made. Any thread may call it. */
final class Cluster {
  static final String BROKER_NAME = "broker-a";
  private static final long LIMIT_MS = Long.getLong("clients.limit.ms", 60_000);
  private static final long LOOK_MS = 20;

  final String nameServer;
  final String broker;
  final DefaultMQAdminExt admin = new DefaultMQAdminExt();

  Cluster(String nameServer, String broker) throws MQClientException {
    this.nameServer = nameServer;
    this.broker = broker;
    admin.setNamesrvAddr(nameServer);
    admin.setInstanceName("topics");
    admin.start();
  }

  /** Makes a topic, and returns once clients can find it. */
  void makeTopic(String name, int queues, int perm) throws Exception {
    admin.createAndUpdateTopicConfig(broker, new TopicConfig(name, queues, queues, perm));
    await("the route of " + name, () -> admin.examineTopicRouteInfo(name) != null);
  }

  /** Has the broker filter by SQL92, which it does not unless it is told to. */
  void allowConditions() throws Exception {
    Properties settings = new Properties();
    settings.setProperty("enablePropertyFilter", "true");
    admin.updateBrokerConfig(broker, settings);
  }

  /** Returns once something is so; what throws is not so yet. */
  static void await(String what, Callable<Boolean> isSo) throws InterruptedException {
    long end = System.nanoTime() + LIMIT_MS * 1_000_000;
    Exception last = null;
    while (System.nanoTime() < end) {
      try {
        if (isSo.call()) {
          return;
        }
      } catch (InterruptedException interrupted) {
        throw interrupted;
      } catch (Exception error) {
        last = error;
      }
      Thread.sleep(LOOK_MS);
    }
    throw new IllegalStateException("it did not come to " + what, last);
  }
}
