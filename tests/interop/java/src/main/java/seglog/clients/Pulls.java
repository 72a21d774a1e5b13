package seglog.clients;

import static java.nio.charset.StandardCharsets.UTF_8;

import java.util.ArrayList;
import java.util.Collection;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.apache.rocketmq.client.consumer.DefaultLitePullConsumer;
import org.apache.rocketmq.client.consumer.DefaultMQPullConsumer;
import org.apache.rocketmq.client.consumer.PullResult;
import org.apache.rocketmq.client.consumer.store.ReadOffsetType;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.common.message.MessageQueue;

/** Consumers that take messages themselves. */
final class Pulls {
  private Pulls() {}

  static Object statuses(Site site) throws Exception {
    String topic = site.topic();
    Pushes.send(site, topic, 20);
    DefaultMQPullConsumer consumer = site.pull(site.name("g"));
    MessageQueue queue = Site.queue(topic, 1);
    List<String> queues =
        consumer.fetchSubscribeMessageQueues(topic).stream()
            .map(MessageQueue::toString)
            .sorted()
            .toList();
    Map<String, Object> found = new LinkedHashMap<>();
    found.put("queues", queues);
    for (long from : List.of(0L, 3L, 5L, 6L, 99L)) {
      found.put("from " + from, Facts.outcome(() -> facts(consumer.pull(queue, "*", from, 2))));
    }
    found.put("tags", Facts.outcome(() -> facts(consumer.pull(queue, "B || C", 0, 32))));
    found.put("no tags", Facts.outcome(() -> facts(consumer.pull(queue, "X", 0, 32))));
    found.put(
        "no queue", Facts.outcome(() -> facts(consumer.pull(Site.queue(topic, 9), "*", 0, 32))));
    found.put(
        "no topic",
        Facts.outcome(() -> facts(consumer.pull(Site.queue(site.name("U"), 0), "*", 0, 32))));
    found.put("no offset yet", consumer.fetchConsumeOffset(queue, true));
    consumer.updateConsumeOffset(queue, 3);
    consumer.getDefaultMQPullConsumerImpl().getOffsetStore().persist(queue);
    site.await("the commit", () -> consumer.fetchConsumeOffset(queue, true) == 3);
    return found;
  }

  /** A pull that is held ends with the message that comes. */
  static Object held(Site site) throws Exception {
    String topic = site.topic();
    DefaultMQPullConsumer consumer = site.pull(site.name("g"));
    DefaultMQProducer producer = site.producer();
    MessageQueue queue = Site.queue(topic, 0);
    producer.send(Sends.message(topic, 1), queue);
    site.stored(topic, Site.QUEUES, 1);
    CompletableFuture<PullResult> pulled =
        CompletableFuture.supplyAsync(
            () -> {
              try {
                return consumer.pullBlockIfNotFound(queue, "*", 1, 32);
              } catch (Exception error) {
                throw new IllegalStateException(error);
              }
            });
    producer.send(Sends.message(topic, 2), queue);
    return facts(pulled.get(1, TimeUnit.MINUTES));
  }

  private static Map<String, Object> facts(PullResult pulled) {
    Map<String, Object> facts = new LinkedHashMap<>();
    facts.put("status", pulled.getPullStatus().name());
    facts.put("next", pulled.getNextBeginOffset());
    facts.put("range", List.of(pulled.getMinOffset(), pulled.getMaxOffset()));
    List<MessageExt> messages = pulled.getMsgFoundList();
    facts.put("bodies", messages == null ? null : messages.stream().map(Facts::body).toList());
    return facts;
  }

  static Object lite(Site site) throws Exception {
    String topic = site.topic();
    Pushes.send(site, topic, 40);
    DefaultLitePullConsumer consumer = site.lite(site.name("g"));
    consumer.setAutoCommit(false);
    consumer.subscribe(topic, "A || B || C");
    consumer.start();
    Seen seen = poll(site, consumer, 32);
    consumer.commitSync();
    List<Long> committed = new ArrayList<>();
    site.await(
        "the commit",
        () -> {
          committed.clear();
          for (int queueId = 0; queueId < Site.QUEUES; queueId++) {
            committed.add(consumer.committed(Site.queue(topic, queueId)));
          }
          return !committed.contains(-1L);
        });
    consumer.shutdown();
    return Map.of("seen", seen.ofQueues(), "committed", committed);
  }

  /** What was committed is not given again to the next of the group. */
  static Object liteAgain(Site site) throws Exception {
    String topic = site.topic();
    Pushes.send(site, topic, 8);
    DefaultLitePullConsumer first = site.lite(site.name("g"));
    first.setAutoCommitIntervalMillis(1_000);
    first.subscribe(topic, "*");
    first.start();
    List<String> seen = poll(site, first, 8).bodies();
    site.await(
        "all commits stored",
        () -> {
          first.poll(100); // commits by itself what was given before
          return stored(first, topic) == 8;
        });
    first.shutdown();
    site.producer().send(new Message(topic, "last".getBytes(UTF_8)), Site.queue(topic, 0));
    DefaultLitePullConsumer second = site.lite(site.name("g"));
    second.subscribe(topic, "*");
    second.start();
    return Map.of("first", seen, "second", poll(site, second, 1).bodies());
  }

  /**
   * Returns what the broker has of a consumer's commits. They are sent oneway each second, and the
   * real broker works on them in several threads: one that it was slow with, because its classes were
   * not loaded yet, undoes one that is sent at the end.
   */
  private static long stored(DefaultLitePullConsumer consumer, String topic) {
    long sum = 0;
    for (int queueId = 0; queueId < Site.QUEUES; queueId++) {
      MessageQueue queue = Site.queue(topic, queueId);
      sum += Math.max(0, consumer.getOffsetStore().readOffset(queue, ReadOffsetType.READ_FROM_STORE));
    }
    return sum;
  }

  static Object liteAssigned(Site site) throws Exception {
    String topic = site.topic();
    Pushes.send(site, topic, 40);
    DefaultLitePullConsumer consumer = site.lite(site.name("g"));
    consumer.setAutoCommit(false);
    consumer.start();
    Collection<MessageQueue> queues = consumer.fetchMessageQueues(topic);
    List<MessageQueue> assigned = List.of(Site.queue(topic, 1), Site.queue(topic, 2));
    consumer.assign(assigned);
    Map<String, Object> found = new LinkedHashMap<>();
    found.put("queues", queues.stream().map(MessageQueue::toString).sorted().toList());
    found.put("begin", poll(site, consumer, 20).ofQueues());
    consumer.seek(assigned.get(0), 7);
    found.put("sought", poll(site, consumer, 3).ofQueues());
    consumer.seekToBegin(assigned.get(1));
    found.put("again", poll(site, consumer, 10).ofQueues());
    consumer.seekToEnd(assigned.get(0));
    site.producer().send(Sends.message(topic, 40), assigned.get(0));
    found.put("end", poll(site, consumer, 1).ofQueues());
    found.put("beyond", Facts.outcome(() -> seek(consumer, assigned.get(0), 99)));
    found.put("not assigned", Facts.outcome(() -> seek(consumer, Site.queue(topic, 0), 1)));
    found.put("at 0", consumer.offsetForTimestamp(assigned.get(0), 0L));
    found.put("none committed", consumer.committed(assigned.get(0)));
    return found;
  }

  private static Object seek(DefaultLitePullConsumer consumer, MessageQueue queue, long to)
      throws Exception {
    consumer.seek(queue, to);
    return "sought";
  }

  private static Seen poll(Site site, DefaultLitePullConsumer consumer, int count)
      throws Exception {
    Seen seen = new Seen();
    site.await(
        count + " messages",
        () -> {
          seen.add(consumer.poll(100));
          return seen.count() >= count;
        });
    return seen;
  }
}
