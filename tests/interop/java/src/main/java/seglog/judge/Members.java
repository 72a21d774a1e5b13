package seglog.judge;

import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import org.apache.rocketmq.client.ClientConfig;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.ConsumeOrderlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.consumer.listener.MessageListenerOrderly;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.common.message.MessageQueue;
import org.apache.rocketmq.remoting.protocol.heartbeat.MessageModel;
import seglog.clients.ClientEnds;

/**
 * RocketMQ's own clients of a cluster: members of consumer groups, which note what they are given, and
 * {@code mqadmin}.
 */
final class Members implements AutoCloseable {
  private static final int END_LIMIT_MS = 30_000;
  private final String nameServers;
  private final Map<String, Member> members = new HashMap<>();

  private record Member(DefaultMQPushConsumer consumer, Queue<Map<String, Object>> seen) {}

  Members(String nameServers) {
    this.nameServers = nameServers;
  }

  /** Has a member join; its listener is done with each message at once. */
  void start(Request request, Answers answers) throws Exception {
    Queue<Map<String, Object>> seen = new ConcurrentLinkedQueue<>();
    DefaultMQPushConsumer consumer = new DefaultMQPushConsumer(request.group);
    consumer.setNamesrvAddr(nameServers);
    consumer.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
    consumer.setAwaitTerminationMillisWhenShutdown(END_LIMIT_MS); // what was begun is committed
    if (request.broadcasts) {
      consumer.setMessageModel(MessageModel.BROADCASTING);
    }
    consumer.subscribe(request.topic, "*");
    if (request.isOrdered) {
      consumer.registerMessageListener(
          (MessageListenerOrderly)
              (messages, context) -> {
                note(messages, seen);
                return ConsumeOrderlyStatus.SUCCESS;
              });
    } else {
      consumer.registerMessageListener(
          (MessageListenerConcurrently)
              (messages, context) -> {
                note(messages, seen);
                return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
              });
    }
    consumer.start();
    members.put(request.client, new Member(consumer, seen));
    answers.line("member").put("clientId", consumer.buildMQClientId()).send();
  }

  private static void note(List<MessageExt> messages, Queue<Map<String, Object>> seen) {
    for (MessageExt message : messages) {
      seen.add(
          Map.of(
              "queueId", message.getQueueId(),
              "queueOffset", message.getQueueOffset(),
              "body", new String(message.getBody(), StandardCharsets.UTF_8),
              "reconsumeTimes", message.getReconsumeTimes()));
    }
  }

  /** Puts what a member was given since it was asked last, and the queues that it has. */
  void look(Request request, Answers answers) {
    Member member = members.get(request.client);
    List<Map<String, Object>> seen = new ArrayList<>();
    for (Map<String, Object> one = member.seen.poll(); one != null; one = member.seen.poll()) {
      seen.add(one);
    }
    List<Integer> queues = new ArrayList<>();
    for (MessageQueue queue :
        member
            .consumer
            .getDefaultMQPushConsumerImpl()
            .getRebalanceImpl()
            .getProcessQueueTable()
            .keySet()) {
      if (queue.getTopic().equals(request.topic)) {
        queues.add(queue.getQueueId());
      }
    }
    queues.sort(null);
    answers.line("member").put("seen", seen).put("queues", queues).send();
  }

  /** Has a member leave its group. */
  void stop(Request request) {
    try (ClientEnds ends = ClientEnds.begin()) {
      members.remove(request.client).consumer.shutdown();
    }
  }

  /** Runs a command of mqadmin, and puts what it prints. */
  void admin(Request request, Answers answers) {
    AdminTool.run(request.arguments, nameServers, answers);
  }

  /** Puts the id that a client has with the settings of the request, as it is when it has started. */
  static void clientId(Request request, Answers answers) {
    ClientConfig config = new ClientConfig();
    if (request.instanceName != null) {
      config.setInstanceName(request.instanceName);
    }
    config.setUnitName(request.unitName);
    if (!request.broadcasts) {
      config.changeInstanceNameToPID();
    }
    answers
        .line("clientId")
        .put("id", config.buildMQClientId())
        .put("ip", config.getClientIP())
        .put("pid", ProcessHandle.current().pid())
        .send();
  }

  @Override
  public void close() {
    members.values().forEach(member -> member.consumer.shutdown());
  }
}
