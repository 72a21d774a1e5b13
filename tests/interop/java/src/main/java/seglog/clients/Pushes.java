package seglog.clients;

import static java.nio.charset.StandardCharsets.UTF_8;

import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.IntStream;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.MessageSelector;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageExt;

/** Consumers that are given messages, concurrently. */
final class Pushes {
  private static final String[] TAGS = {"A", "B", "C", "D"};

  private Pushes() {}

  /** Sends messages to all queues in turn; each has a tag and a price. */
  static void send(Site site, String topic, int count) throws Exception {
    DefaultMQProducer producer = site.producer();
    for (int number = 0; number < count; number++) {
      Message message =
          new Message(topic, TAGS[number / 4 % TAGS.length], ("m" + number).getBytes(UTF_8));
      message.putUserProperty("price", "" + number);
      producer.send(message, Site.queue(topic, number % Site.QUEUES));
    }
    site.stored(topic, Site.QUEUES, count);
  }

  static Object concurrent(Site site) throws Exception {
    String topic = site.topic();
    send(site, topic, 40);
    Seen seen = new Seen();
    DefaultMQPushConsumer consumer = site.push(site.name("g"), topic, "*");
    consumer.registerMessageListener(seen.listener());
    consumer.start();
    site.await("40 messages", () -> seen.count() >= 40);
    consumer.shutdown();
    Map<Integer, List<MessageExt>> first = new LinkedHashMap<>();
    seen.all().stream()
        .filter(one -> one.getQueueOffset() == 0)
        .forEach(one -> first.put(one.getQueueId(), List.of(one)));
    return Map.of(
        "bodies", seen.bodies(),
        "first", Facts.ofQueues(first),
        "committed", site.committed(site.name("g"), topic, 40));
  }

  static Object byTags(Site site) throws Exception {
    return filtered(site, MessageSelector.byTag("A || C"), 20);
  }

  static Object bySql(Site site) throws Exception {
    return filtered(site, MessageSelector.bySql("price BETWEEN 5 AND 9 OR TAGS = 'D'"), 13);
  }

  /** The last message that is sent is matched, so what came before it was looked at. */
  private static Object filtered(Site site, MessageSelector wanted, int count) throws Exception {
    String topic = site.topic();
    Seen seen = new Seen();
    DefaultMQPushConsumer consumer = site.push(site.name("g"));
    consumer.subscribe(topic, wanted);
    consumer.registerMessageListener(seen.listener());
    send(site, topic, 40);
    consumer.start();
    site.await(count + " messages", () -> seen.count() >= count);
    consumer.shutdown();
    return seen.bodies();
  }

  /** A broker that does not filter by SQL92 says so when the consumer starts. */
  static Object noConditions(Site site) throws Exception {
    return started(site, site.topic(), "g", "price > 1");
  }

  private static Object started(Site site, String topic, String group, String condition)
      throws Exception {
    DefaultMQPushConsumer consumer = site.push(site.name(group));
    consumer.setInstanceName(site.name(group)); // a client that has refused one refuses all
    consumer.subscribe(topic, MessageSelector.bySql(condition));
    consumer.registerMessageListener(new Seen().listener());
    return Facts.outcome(
        () -> {
          consumer.start();
          return "started";
        });
  }

  static Object wrongConditions(Site site) throws Exception {
    String topic = site.topic();
    Map<String, Object> found = new LinkedHashMap<>();
    for (String condition : List.of("price >", "price > 'a'", "NOT", "a = 1 AND AND b = 2")) {
      found.put(condition, started(site, topic, "g" + found.size(), condition));
    }
    return found;
  }

  static Object broadcast(Site site) throws Exception {
    String topic = site.topic();
    send(site, topic, 20);
    Map<String, Object> found = new LinkedHashMap<>();
    List<Seen> all = List.of(new Seen(), new Seen());
    for (int number : List.of(0, 1)) {
      DefaultMQPushConsumer consumer = site.push(site.name("g"), topic, "*");
      consumer.setInstanceName(site.name("i" + number));
      Models.broadcast(consumer);
      consumer.registerMessageListener(all.get(number).listener());
      consumer.start();
    }
    for (Seen seen : all) {
      site.await("20 messages", () -> seen.count() >= 20);
      found.put("consumer " + found.size(), seen.bodies());
    }
    found.put("committed", site.committed(site.name("g"), topic, 0));
    return found;
  }

  /** A new group of a young topic begins at its first message, wherever it is told to. */
  static Object beginnings(Site site) throws Exception {
    String topic = site.topic();
    send(site, topic, 8);
    Map<String, Object> found = new LinkedHashMap<>();
    for (ConsumeFromWhere from :
        List.of(
            ConsumeFromWhere.CONSUME_FROM_LAST_OFFSET,
            ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET,
            ConsumeFromWhere.CONSUME_FROM_TIMESTAMP)) {
      Seen seen = new Seen();
      DefaultMQPushConsumer consumer = site.push(site.name(from.name()), topic, "*");
      consumer.setConsumeFromWhere(from);
      consumer.registerMessageListener(seen.listener());
      consumer.start();
      site.await("8 messages", () -> seen.count() >= 8);
      found.put(from.name(), seen.bodies());
    }
    return found;
  }

  /** Two members have two queues each, the one that stays has all. */
  static Object shared(Site site) throws Exception {
    String topic = site.topic();
    String group = site.name("g");
    Seen seen = new Seen();
    List<DefaultMQPushConsumer> both =
        IntStream.range(0, 2)
            .mapToObj(
                number -> {
                  DefaultMQPushConsumer consumer = site.push(group);
                  consumer.setInstanceName(site.name("i" + number));
                  consumer.registerMessageListener(seen.listener());
                  return consumer;
                })
            .toList();
    for (DefaultMQPushConsumer each : both) {
      each.subscribe(topic, "*");
      each.start();
    }
    site.await("two queues each", () -> both.stream().allMatch(one -> shares(one, topic) == 2));
    send(site, topic, 20);
    site.await("20 messages", () -> seen.count() >= 20);
    List<String> together = seen.bodies();
    both.get(0).shutdown();
    site.await("all queues", () -> shares(both.get(1), topic) == Site.QUEUES);
    site.producer().send(new Message(topic, "last".getBytes(UTF_8)), Site.queue(topic, 0));
    site.await("the last", () -> seen.bodies().contains("last"));
    return together;
  }

  private static long shares(DefaultMQPushConsumer consumer, String topic) {
    return consumer
        .getDefaultMQPushConsumerImpl()
        .getRebalanceImpl()
        .getProcessQueueTable()
        .keySet()
        .stream()
        .filter(queue -> queue.getTopic().equals(topic))
        .count();
  }
}
