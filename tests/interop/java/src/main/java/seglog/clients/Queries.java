package seglog.clients;

import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.common.message.MessageQueue;

/** Messages that are looked for, and where queues begin and end. */
final class Queries {
  private Queries() {}

  static Object ofMessages(Site site) throws Exception {
    String topic = site.topic();
    DefaultMQProducer producer = site.producer();
    SendResult sent = null;
    for (int number = 0; number < 8; number++) {
      sent = producer.send(Sends.message(topic, number % 4), Site.queue(topic, number % 4));
    }
    SendResult last = sent;
    site.await("the index", () -> find(producer, topic, "key3").size() == 2);
    Map<String, Object> found = new LinkedHashMap<>();
    found.put("by key", find(producer, topic, "key3").stream().map(Facts::body).toList());
    found.put("at most one", producer.queryMessage(topic, "key3", 1, 0, Long.MAX_VALUE).getMessageList().size());
    found.put("by no key", Facts.outcome(() -> find(producer, topic, "none")));
    found.put("long ago", Facts.outcome(() -> producer.queryMessage(topic, "key3", 8, 0, 1)));
    found.put("by unique key", Facts.of(producer.viewMessage(topic, last.getMsgId())));
    found.put("by place", Facts.of(producer.viewMessage(topic, last.getOffsetMsgId())));
    String id = last.getOffsetMsgId();
    String beyond = id.substring(0, id.length() - 16) + "00000000FFFFFFFF";
    found.put("beyond the log", Facts.outcome(() -> producer.viewMessage(topic, beyond)));
    return found;
  }

  private static List<MessageExt> find(DefaultMQProducer producer, String topic, String key)
      throws Exception {
    return producer.queryMessage(topic, key, 32, 0, Long.MAX_VALUE).getMessageList();
  }

  static Object ofQueues(Site site) throws Exception {
    String topic = site.topic();
    long begun = System.currentTimeMillis();
    Pushes.send(site, topic, 9);
    DefaultMQProducer producer = site.producer();
    Map<String, Object> found = new LinkedHashMap<>();
    for (int queueId : List.of(0, 1, 9)) {
      MessageQueue queue = Site.queue(topic, queueId);
      found.put(
          "range of " + queueId,
          List.of(
              Facts.outcome(() -> producer.minOffset(queue)),
              Facts.outcome(() -> producer.maxOffset(queue))));
    }
    MessageQueue queue = Site.queue(topic, 0);
    for (long time : List.of(0L, begun - 60_000, begun + 3_600_000)) {
      found.put("offset at time " + found.size(), producer.searchOffset(queue, time));
    }
    found.put("is young", producer.earliestMsgStoreTime(queue) >= begun - 1_000);
    found.put(
        "queue without messages",
        Facts.outcome(() -> producer.earliestMsgStoreTime(Site.queue(topic, 9))));
    MessageQueue none = Site.queue(site.name("U"), 0);
    found.put("no topic", Facts.outcome(() -> producer.maxOffset(none)));
    found.put(
        "no route", Facts.outcome(() -> producer.fetchPublishMessageQueues(site.name("U"))));
    return found;
  }
}
