package seglog.clients;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentLinkedQueue;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.common.message.MessageExt;

/** What listeners were given, in its order. Any thread may add to it. */
final class Seen {
  private final ConcurrentLinkedQueue<MessageExt> messages = new ConcurrentLinkedQueue<>();

  void add(List<MessageExt> more) {
    messages.addAll(more);
  }

  int count() {
    return messages.size();
  }

  /** Returns a listener that is done with each message at once. */
  MessageListenerConcurrently listener() {
    return (more, context) -> {
      add(more);
      return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
    };
  }

  List<MessageExt> all() {
    return new ArrayList<>(messages);
  }

  List<String> bodies() {
    return messages.stream().map(Facts::body).sorted().toList();
  }

  /** Returns bodies in the order in which they came, queue by queue. */
  Map<Integer, List<String>> ofQueues() {
    Map<Integer, List<String>> queues = new TreeMap<>();
    for (MessageExt message : messages) {
      queues
          .computeIfAbsent(message.getQueueId(), ignored -> new ArrayList<>())
          .add(Facts.body(message));
    }
    return queues;
  }

  /** Returns each attempt of each message: body, topic and number of the attempt. */
  List<String> attempts() {
    return messages.stream()
        .map(one -> Facts.body(one) + " of " + one.getTopic() + ", " + one.getReconsumeTimes())
        .sorted()
        .toList();
  }
}
