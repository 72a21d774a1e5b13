package seglog.clients;

import java.util.List;
import java.util.Map;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.ConsumeOrderlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.consumer.listener.MessageListenerOrderly;
import org.apache.rocketmq.common.message.MessageExt;

/** Messages that a listener is not done with. */
final class Retries {
  private static final String BAD = "m5";

  private Retries() {}

  /** A message comes again, twice, and is a dead letter then. */
  static Object concurrent(Site site) throws Exception {
    String topic = site.topic();
    String group = site.name("g");
    Pushes.send(site, topic, 8);
    Seen seen = new Seen();
    DefaultMQPushConsumer consumer = site.push(group, topic, "*");
    consumer.setMaxReconsumeTimes(2);
    consumer.registerMessageListener(
        (MessageListenerConcurrently)
            (messages, context) -> {
              seen.add(messages);
              context.setDelayLevelWhenNextConsume(1);
              return isBad(messages)
                  ? ConsumeConcurrentlyStatus.RECONSUME_LATER
                  : ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
            });
    consumer.start();
    site.await("three attempts", () -> seen.count() >= 10);
    Map<Integer, List<MessageExt>> dead = site.stored("%DLQ%" + group, 1, 1);
    consumer.shutdown();
    return Map.of(
        "attempts", seen.attempts(),
        "dead", Facts.ofQueues(dead),
        "retried", Facts.ofQueues(site.stored("%RETRY%" + group, 1, 2)),
        "committed", site.committed(group, topic, 8));
  }

  /** One that throws, and one that returns null, are as one that wants it later. */
  static Object thrown(Site site) throws Exception {
    String topic = site.topic();
    Pushes.send(site, topic, 8);
    Seen seen = new Seen();
    DefaultMQPushConsumer consumer = site.push(site.name("g"), topic, "*");
    consumer.registerMessageListener(
        (MessageListenerConcurrently)
            (messages, context) -> {
              seen.add(messages);
              context.setDelayLevelWhenNextConsume(1);
              if (isBad(messages) && messages.get(0).getReconsumeTimes() == 0) {
                throw new IllegalStateException("bad");
              }
              return isBad(messages) && messages.get(0).getReconsumeTimes() == 1
                  ? null
                  : ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
            });
    consumer.start();
    site.await("three attempts", () -> seen.count() >= 10);
    return seen.attempts();
  }

  static Object sentBackByHand(Site site) throws Exception {
    String topic = site.topic();
    Pushes.send(site, topic, 4);
    Seen seen = new Seen();
    DefaultMQPushConsumer consumer = site.push(site.name("g"), topic, "*");
    consumer.registerMessageListener(
        (MessageListenerConcurrently)
            (messages, context) -> {
              seen.add(messages);
              if (messages.get(0).getReconsumeTimes() == 0) {
                Facts.outcome(
                    () -> {
                      consumer.sendMessageBack(messages.get(0), 1);
                      return null;
                    });
              }
              return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
            });
    consumer.start();
    site.await("two attempts of each", () -> seen.count() >= 8);
    return seen.attempts();
  }

  /** Each queue is consumed in order, and waits for a message that fails. */
  static Object orderly(Site site) throws Exception {
    String topic = site.topic();
    String group = site.name("g");
    Pushes.send(site, topic, 40);
    Seen seen = new Seen();
    DefaultMQPushConsumer consumer = inOrder(site, group, topic, seen, 2);
    consumer.start();
    site.await("42 attempts", () -> seen.count() >= 42);
    consumer.shutdown();
    return Map.of("seen", seen.ofQueues(), "committed", site.committed(group, topic, 40));
  }

  static Object orderlyDead(Site site) throws Exception {
    String topic = site.topic();
    String group = site.name("g");
    Pushes.send(site, topic, 12);
    Seen seen = new Seen();
    DefaultMQPushConsumer consumer = inOrder(site, group, topic, seen, Integer.MAX_VALUE);
    consumer.setMaxReconsumeTimes(1);
    consumer.start();
    Map<Integer, List<MessageExt>> dead = site.stored("%DLQ%" + group, 1, 1);
    site.await("13 attempts", () -> seen.count() >= 13);
    consumer.shutdown();
    return Map.of(
        "seen", seen.ofQueues(),
        "dead", Facts.ofQueues(dead),
        "committed", site.committed(group, topic, 12));
  }

  private static DefaultMQPushConsumer inOrder(
      Site site, String group, String topic, Seen seen, int failures) throws Exception {
    DefaultMQPushConsumer consumer = site.push(group, topic, "*");
    consumer.setSuspendCurrentQueueTimeMillis(100);
    consumer.registerMessageListener(
        (MessageListenerOrderly)
            (messages, context) -> {
              seen.add(messages);
              return isBad(messages) && messages.get(0).getReconsumeTimes() < failures
                  ? ConsumeOrderlyStatus.SUSPEND_CURRENT_QUEUE_A_MOMENT
                  : ConsumeOrderlyStatus.SUCCESS;
            });
    return consumer;
  }

  private static boolean isBad(List<MessageExt> messages) {
    return Facts.body(messages.get(0)).equals(BAD);
  }
}
