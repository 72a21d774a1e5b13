package seglog.clients;

import static java.nio.charset.StandardCharsets.UTF_8;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageQueueAssignment;
import org.apache.rocketmq.common.message.MessageRequestMode;

/** Consumers that leave it to the broker which queues are theirs. */
final class Assignments {
  private static final int ASK_LIMIT_MS = 10_000;

  private Assignments() {}

  /** Two members are given two queues each, the one that stays is given all. */
  static Object shared(Site site) throws Exception {
    String topic = site.topic();
    String group = site.name("g");
    Seen seen = new Seen();
    List<DefaultMQPushConsumer> both = new ArrayList<>();
    for (int number : List.of(0, 1)) {
      DefaultMQPushConsumer consumer = site.push(group, topic, "*");
      consumer.setInstanceName(site.name("i" + number));
      consumer.setClientRebalance(false);
      consumer.registerMessageListener(seen.listener());
      consumer.start();
      both.add(consumer);
    }
    site.await(
        "two queues each", () -> both.stream().allMatch(one -> queues(one, topic).size() == 2));
    Pushes.send(site, topic, 20);
    site.await("20 messages", () -> seen.count() >= 20);
    Map<String, Object> found = new LinkedHashMap<>();
    found.put("queues", both.stream().map(one -> queues(one, topic)).toList());
    found.put("bodies", seen.bodies());
    for (String strategy : List.of("AVG", "AVG_BY_CIRCLE", "CONSISTENT_HASH", "CONFIG", "")) {
      found.put("by " + strategy, asked(both, topic, group, strategy));
    }
    found.put("offline", asked(both, topic, site.name("offline"), "AVG"));
    found.put("retries", asked(both, "%RETRY%" + group, group, "AVG"));
    both.get(0).shutdown();
    site.await("all queues", () -> queues(both.get(1), topic).size() == Site.QUEUES);
    site.producer().send(new Message(topic, "last".getBytes(UTF_8)), Site.queue(topic, 0));
    site.await("the last", () -> seen.bodies().contains("last"));
    return found;
  }

  /** A group is set to pull a topic; what is no topic or no group is refused. */
  static Object modes(Site site) throws Exception {
    String topic = site.topic();
    Map<String, Object> found = new LinkedHashMap<>();
    for (List<String> each :
        List.of(
            List.of(topic, site.name("g")),
            List.of("%RETRY%" + site.name("g"), site.name("g")),
            List.of(site.name("none"), site.name("g")),
            List.of(topic, "no group"))) {
      found.put(String.join(" of ", each), Facts.outcome(() -> set(site, each.get(0), each.get(1))));
    }
    return found;
  }

  private static Object set(Site site, String topic, String group) throws Exception {
    site.cluster.admin.setMessageRequestMode(
        site.cluster.broker, topic, group, MessageRequestMode.PULL, 0, ASK_LIMIT_MS);
    return "set";
  }

  private static List<Object> asked(
      List<DefaultMQPushConsumer> members, String topic, String group, String strategy)
      throws Exception {
    List<Object> found = new ArrayList<>();
    for (DefaultMQPushConsumer member : members) {
      Set<MessageQueueAssignment> told =
          member
              .getDefaultMQPushConsumerImpl()
              .getmQClientFactory()
              .queryAssignment(topic, group, strategy, member.getMessageModel(), ASK_LIMIT_MS);
      found.add(
          told == null
              ? "cannot say"
              : told.stream()
                  .map(one -> one.getMode() + " " + one.getMessageQueue().getQueueId())
                  .sorted()
                  .toList());
    }
    return found;
  }

  private static List<Integer> queues(DefaultMQPushConsumer consumer, String topic) {
    return consumer
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
}
