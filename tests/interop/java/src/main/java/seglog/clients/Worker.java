package seglog.clients;

import static java.nio.charset.StandardCharsets.UTF_8;

import com.google.gson.Gson;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.rocketmq.client.ClientConfig;
import org.apache.rocketmq.client.consumer.DefaultLitePullConsumer;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.ConsumeOrderlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.consumer.listener.MessageListenerOrderly;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.client.producer.SendStatus;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageExt;

/**
 * Clients that live until they are told to end, or are killed: {@code Worker NAME_SERVER}.
 *
 * <p>Each line of standard input is an order, each line of standard output is what happened, in JSON:
 *
 * <pre>
 * join NAME GROUP TOPIC KIND     a consumer, CLUSTERING, ORDERLY, BROADCASTING or LITE
 * look NAME TOPIC                which queues it has
 * leave NAME                     it ends
 * send NAME TOPIC QUEUES PAUSE   sends until it is hushed, a message to each queue in turn; of 0 queues
 *                                the producer chooses one
 * hush NAME                      no further message; answered when the last one is acknowledged
 * </pre>
 */
public final class Worker {
  private static final int INTERVAL_MS = 1_000;
  private static final int SEND_LIMIT_MS = 3_000;
  private static final int AGAIN_MS = 200;
  private static final int END_LIMIT_MS = 30_000;
  private static final int THREADS = 2;
  private static final Gson GSON = new Gson();

  private final String nameServer;
  private final PrintStream out;
  private final Map<String, DefaultMQPushConsumer> consumers = new HashMap<>();
  private final Map<String, Poller> pollers = new HashMap<>();
  private final Map<String, Sender> senders = new HashMap<>();

  private Worker(String nameServer, PrintStream out) {
    this.nameServer = nameServer;
    this.out = out;
  }

  /** Does as it is told until there is nothing more to read, and halts. */
  public static void main(String[] args) throws Exception {
    Worker worker = new Worker(args[0], System.out);
    System.setOut(System.err); // clients print there at times
    BufferedReader orders = new BufferedReader(new InputStreamReader(System.in, UTF_8));
    for (String line = orders.readLine(); line != null; line = orders.readLine()) {
      worker.obey(line.split(" "));
    }
    Runtime.getRuntime().halt(0);
  }

  private void obey(String[] words) throws Exception {
    String name = words[1];
    switch (words[0]) {
      case "join" -> join(name, words[2], words[3], words[4]);
      case "look" -> say(Map.of("did", "look", "name", name, "queues", queues(name, words[2])));
      case "leave" -> {
        if (pollers.containsKey(name)) {
          pollers.remove(name).end();
        } else {
          shutDown(consumers.remove(name)::shutdown);
        }
        say(Map.of("did", "leave", "name", name));
      }
      case "send" -> {
        Sender sender =
            new Sender(name, words[2], Integer.parseInt(words[3]), Long.parseLong(words[4]));
        senders.put(name, sender);
        sender.start();
        say(Map.of("did", "send", "name", name));
      }
      case "hush" -> {
        Sender sender = senders.remove(name);
        sender.isOver = true;
        sender.join();
        say(Map.of("did", "hush", "name", name, "count", sender.count));
      }
      default -> throw new IllegalArgumentException(words[0]);
    }
  }

  private void join(String name, String group, String topic, String kind) throws Exception {
    if (kind.equals("LITE")) {
      Poller poller = new Poller(name, group, topic);
      poller.start();
      pollers.put(name, poller);
      say(Map.of("did", "join", "name", name));
      return;
    }
    DefaultMQPushConsumer consumer = new DefaultMQPushConsumer(group);
    configure(consumer, name);
    consumer.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
    consumer.setConsumeThreadMin(THREADS);
    consumer.setConsumeThreadMax(THREADS);
    consumer.setAwaitTerminationMillisWhenShutdown(END_LIMIT_MS); // what was begun is committed
    consumer.subscribe(topic, "*");
    if (kind.equals("ORDERLY")) {
      consumer.registerMessageListener(
          (MessageListenerOrderly)
              (messages, context) -> {
                note(name, messages);
                return ConsumeOrderlyStatus.SUCCESS;
              });
    } else {
      consumer.registerMessageListener(
          (MessageListenerConcurrently)
              (messages, context) -> {
                note(name, messages);
                return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
              });
    }
    if (kind.equals("BROADCASTING")) {
      Models.broadcast(consumer);
    }
    consumer.start();
    consumers.put(name, consumer);
    say(Map.of("did", "join", "name", name));
  }

  private static void shutDown(Runnable client) {
    try (ClientEnds ends = ClientEnds.begin()) {
      client.run();
    }
  }

  private List<Integer> queues(String name, String topic) throws Exception {
    if (pollers.containsKey(name)) {
      return pollers.get(name).consumer.assignment().stream()
          .filter(queue -> queue.getTopic().equals(topic))
          .map(queue -> queue.getQueueId())
          .sorted()
          .toList();
    }
    return consumers
        .get(name)
        .getDefaultMQPushConsumerImpl()
        .getRebalanceImpl()
        .getProcessQueueTable()
        .keySet()
        .stream()
        .filter(queue -> queue.getTopic().equals(topic))
        .map(queue -> queue.getQueueId())
        .sorted()
        .toList();
  }

  private void note(String name, List<MessageExt> messages) {
    for (MessageExt one : messages) {
      say(
          Map.of(
              "given", name,
              "queue", one.getQueueId(),
              "offset", one.getQueueOffset(),
              "body", new String(one.getBody(), UTF_8)));
    }
  }

  private void configure(ClientConfig client, String name) {
    client.setNamesrvAddr(nameServer);
    client.setInstanceName(name);
    client.setPollNameServerInterval(INTERVAL_MS);
    client.setHeartbeatBrokerInterval(INTERVAL_MS);
    client.setPersistConsumerOffsetInterval(INTERVAL_MS);
  }

  private void say(Map<String, ?> what) {
    byte[] bytes = (GSON.toJson(what) + "\n").getBytes(UTF_8);
    synchronized (out) {
      out.write(bytes, 0, bytes.length);
      out.flush();
    }
  }

  /** Polls until it is told to end, and commits what it has polled. */
  private final class Poller extends Thread {
    private final String name;
    private final DefaultLitePullConsumer consumer;
    private volatile boolean isOver;

    Poller(String name, String group, String topic) throws Exception {
      super(name);
      this.name = name;
      consumer = new DefaultLitePullConsumer(group);
      configure(consumer, name);
      consumer.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
      consumer.setPullThreadNums(THREADS);
      consumer.setAutoCommit(false);
      consumer.subscribe(topic, "*");
      consumer.start();
    }

    @Override
    public void run() {
      while (!isOver) {
        note(name, consumer.poll(AGAIN_MS));
        consumer.commit();
      }
    }

    void end() throws InterruptedException {
      isOver = true;
      join();
      shutDown(consumer::shutdown);
    }
  }

  /** Sends one message after another; what is not acknowledged is sent again until it is. */
  private final class Sender extends Thread {
    private final String name;
    private final String topic;
    private final int queues;
    private final long pauseMs;
    private volatile boolean isOver;
    private volatile int count;

    Sender(String name, String topic, int queues, long pauseMs) {
      super(name);
      this.name = name;
      this.topic = topic;
      this.queues = queues;
      this.pauseMs = pauseMs;
    }

    @Override
    public void run() {
      DefaultMQProducer producer = new DefaultMQProducer("P-" + name);
      configure(producer, name);
      producer.setSendMsgTimeout(SEND_LIMIT_MS);
      try {
        producer.start();
        while (!isOver) {
          sendOne(producer, count);
          count++;
          Thread.sleep(pauseMs);
        }
      } catch (Exception error) {
        throw new IllegalStateException(error);
      } finally {
        shutDown(producer::shutdown);
      }
    }

    private void sendOne(DefaultMQProducer producer, int number) throws InterruptedException {
      String body = name + "-" + number;
      Message message = new Message(topic, body.getBytes(UTF_8));
      while (true) {
        try {
          SendResult sent =
              queues == 0
                  ? producer.send(message)
                  : producer.send(message, Site.queue(topic, number % queues));
          if (sent.getSendStatus() == SendStatus.SEND_OK) {
            say(
                Map.of(
                    "sent", name,
                    "queue", sent.getMessageQueue().getQueueId(),
                    "offset", sent.getQueueOffset(),
                    "body", body));
            return;
          }
          say(Map.of("failed", name, "why", sent.getSendStatus().toString()));
        } catch (InterruptedException interrupted) {
          throw interrupted;
        } catch (Exception error) {
          say(Map.of("failed", name, "why", error.getClass().getSimpleName()));
        }
        Thread.sleep(AGAIN_MS);
      }
    }
  }
}
