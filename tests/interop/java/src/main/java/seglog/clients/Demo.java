package seglog.clients;

import static java.nio.charset.StandardCharsets.UTF_8;

import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentSkipListSet;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.SendStatus;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageExt;

/** RocketMQ's own first programs, example/quickstart: a producer of TopicTest and its consumer. */
final class Demo {
  private static final int MESSAGES = 100;

  private Demo() {}

  static Object quickstart(Site site) throws Exception {
    String topic = site.topic();
    DefaultMQProducer producer = site.producer();
    for (int number = 0; number < MESSAGES; number++) {
      Message message = new Message(topic, "TagA", ("Hello RocketMQ " + number).getBytes(UTF_8));
      if (producer.send(message).getSendStatus() != SendStatus.SEND_OK) {
        throw new IllegalStateException("message " + number + " is not sent well");
      }
    }
    DefaultMQPushConsumer consumer = site.push(site.name("please_rename_unique_group_name"));
    consumer.subscribe(topic, "*");
    consumer.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
    consumer.setConsumeTimestamp("20181109221800");
    ConcurrentSkipListSet<String> seen = new ConcurrentSkipListSet<>();
    consumer.registerMessageListener(
        (MessageListenerConcurrently)
            (messages, context) -> {
              for (MessageExt message : messages) {
                seen.add(message.getTags() + " " + new String(message.getBody(), UTF_8));
              }
              return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
            });
    consumer.start();
    site.await(MESSAGES + " messages", () -> seen.size() >= MESSAGES);
    consumer.shutdown();
    String group = site.name("please_rename_unique_group_name");
    long committed =
        site.committed(group, topic, MESSAGES).stream().mapToLong(Long::longValue).sum();
    return new TreeMap<>(Map.of("seen", List.copyOf(seen), "committed", committed));
  }
}
