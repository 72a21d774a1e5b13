package seglog.clients;

import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.Callable;
import org.apache.rocketmq.client.ClientConfig;
import org.apache.rocketmq.client.consumer.DefaultLitePullConsumer;
import org.apache.rocketmq.client.consumer.DefaultMQPullConsumer;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.PullResult;
import org.apache.rocketmq.client.consumer.PullStatus;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.common.message.MessageQueue;

/** What a scenario works with: clients of its own, and names that no other scenario has. */
final class Site implements AutoCloseable {
  static final int QUEUES = 4;
  private static final int SEND_LIMIT_MS = 30_000;
  private static final int END_LIMIT_MS = 30_000;
  private static final int INTERVAL_MS = 1_000;
  private static final int THREADS = 2;
  private static final int READ_WRITE = 6;
  private static final boolean USES_VIP_CHANNEL = Boolean.getBoolean("clients.vip");

  final Cluster cluster;
  private final String scenario;
  private final Deque<Runnable> closing = new ArrayDeque<>();
  private DefaultMQProducer producer;
  private DefaultMQPullConsumer reader;

  Site(String scenario, Cluster cluster) {
    this.scenario = scenario;
    this.cluster = cluster;
  }

  /** Returns a name that only this scenario has. */
  String name(String what) {
    return scenario + "-" + what;
  }

  /** Makes a topic of four queues. */
  String topic() throws Exception {
    return topic("T", QUEUES, READ_WRITE);
  }

  String topic(String what, int queues, int perm) throws Exception {
    String topic = name(what);
    cluster.makeTopic(topic, queues, perm);
    return topic;
  }

  static MessageQueue queue(String topic, int queueId) {
    return new MessageQueue(topic, Cluster.BROKER_NAME, queueId);
  }

  /** Returns the producer that this scenario has. */
  DefaultMQProducer producer() throws Exception {
    if (producer == null) {
      producer = unstartedProducer("P");
      producer.start();
    }
    return producer;
  }

  DefaultMQProducer unstartedProducer(String what) {
    DefaultMQProducer made = new DefaultMQProducer(name(what));
    configure(made);
    made.setSendMsgTimeout(SEND_LIMIT_MS);
    closing.push(made::shutdown);
    return made;
  }

  /** Returns a consumer that begins at the first message; it is not started. */
  DefaultMQPushConsumer push(String group, String topic, String tags) throws Exception {
    DefaultMQPushConsumer consumer = push(group);
    consumer.subscribe(topic, tags);
    return consumer;
  }

  DefaultMQPushConsumer push(String group) {
    DefaultMQPushConsumer consumer = new DefaultMQPushConsumer(group);
    configure(consumer);
    consumer.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
    consumer.setConsumeThreadMin(THREADS);
    consumer.setConsumeThreadMax(THREADS);
    consumer.setAwaitTerminationMillisWhenShutdown(END_LIMIT_MS); // what was begun is committed
    closing.push(consumer::shutdown);
    return consumer;
  }

  DefaultMQPullConsumer pull(String group) throws Exception {
    DefaultMQPullConsumer consumer = new DefaultMQPullConsumer(group);
    configure(consumer);
    consumer.start();
    closing.push(consumer::shutdown);
    return consumer;
  }

  /** Returns a consumer that begins at the first message; it is not started. */
  DefaultLitePullConsumer lite(String group) {
    DefaultLitePullConsumer consumer = new DefaultLitePullConsumer(group);
    configure(consumer);
    consumer.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
    consumer.setPullThreadNums(THREADS);
    closing.push(consumer::shutdown);
    return consumer;
  }

  private void configure(ClientConfig client) {
    client.setNamesrvAddr(cluster.nameServer);
    client.setInstanceName(scenario);
    client.setVipChannelEnabled(USES_VIP_CHANNEL);
    client.setPollNameServerInterval(INTERVAL_MS);
    client.setHeartbeatBrokerInterval(INTERVAL_MS);
    client.setPersistConsumerOffsetInterval(INTERVAL_MS);
  }

  void await(String what, Callable<Boolean> isSo) throws InterruptedException {
    Cluster.await(scenario + ": " + what, isSo);
  }

  /** Returns what is in a topic, queue by queue, once that are so many messages. */
  Map<Integer, List<MessageExt>> stored(String topic, int queues, int count) throws Exception {
    DefaultMQPullConsumer from = reader();
    await(
        count + " messages in " + topic,
        () -> {
          long sum = 0;
          for (int queueId = 0; queueId < queues; queueId++) {
            sum += from.maxOffset(queue(topic, queueId));
          }
          return sum == count;
        });
    Map<Integer, List<MessageExt>> found = new TreeMap<>();
    for (int queueId = 0; queueId < queues; queueId++) {
      MessageQueue queue = queue(topic, queueId);
      List<MessageExt> messages = new ArrayList<>();
      for (long next = 0; next < from.maxOffset(queue); ) {
        PullResult pulled = from.pull(queue, "*", next, 32);
        if (pulled.getPullStatus() != PullStatus.FOUND) {
          throw new IllegalStateException(topic + " " + queueId + " " + next + ": " + pulled);
        }
        messages.addAll(pulled.getMsgFoundList());
        next = pulled.getNextBeginOffset();
      }
      found.put(queueId, messages);
    }
    return found;
  }

  /** Returns what a group has committed, queue by queue, once that are so many messages. */
  List<Long> committed(String group, String topic, long count) throws Exception {
    DefaultMQPullConsumer of = pull(group);
    List<Long> offsets = new ArrayList<>();
    await(
        count + " messages committed by " + group,
        () -> {
          offsets.clear();
          for (int queueId = 0; queueId < QUEUES; queueId++) {
            offsets.add(of.fetchConsumeOffset(queue(topic, queueId), true));
          }
          return offsets.stream().mapToLong(offset -> Math.max(offset, 0)).sum() == count;
        });
    return offsets;
  }

  private DefaultMQPullConsumer reader() throws Exception {
    if (reader == null) {
      reader = pull(name("reader"));
    }
    return reader;
  }

  @Override
  public void close() {
    try (ClientEnds ends = ClientEnds.begin()) {
      closing.forEach(Runnable::run);
    }
  }
}
