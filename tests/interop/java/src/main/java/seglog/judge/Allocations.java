package seglog.judge;

import java.io.BufferedReader;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.rocketmq.client.consumer.AllocateMessageQueueStrategy;
import org.apache.rocketmq.client.consumer.rebalance.AllocateMachineRoomNearby;
import org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueueAveragely;
import org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueueAveragelyByCircle;
import org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueueByConfig;
import org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueueByMachineRoom;
import org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueueConsistentHash;
import org.apache.rocketmq.common.message.MessageQueue;

/**
 * Asks RocketMQ's own allocation strategies: each line of a file is a group, each line of the
 * output its queues and members as Java sorts them, and by strategy the share of each member.
 */
public final class Allocations {
  private static final String GROUP = "G";
  private static final String STRANGER = "nobody";

  private Allocations() {}

  /** One line of the question; queues are topic, broker name and id. */
  private static final class Question {
    List<List<String>> queues;
    List<String> members;
    Set<String> rooms;
    List<Integer> configured;
    int virtualNodes;
  }

  private static final class BeforeTheAt implements AllocateMachineRoomNearby.MachineRoomResolver {
    @Override
    public String brokerDeployIn(MessageQueue queue) {
      return roomOf(queue.getBrokerName());
    }

    @Override
    public String consumerDeployIn(String clientId) {
      return roomOf(clientId);
    }

    private static String roomOf(String name) {
      return name.substring(0, Math.max(0, name.indexOf('@')));
    }
  }

  /** Runs on the file that is the only argument. */
  public static void main(String[] args) throws IOException {
    StringBuilder out = new StringBuilder();
    try (BufferedReader questions = Files.newBufferedReader(Path.of(args[0]))) {
      for (String line = questions.readLine(); line != null; line = questions.readLine()) {
        out.append(Json.print(answer(Json.parse(line, Question.class)))).append('\n');
      }
    }
    System.out.write(out.toString().getBytes(StandardCharsets.UTF_8));
    System.out.flush();
  }

  private static Map<String, Object> answer(Question question) {
    List<MessageQueue> queues = new ArrayList<>();
    for (List<String> queue : question.queues) {
      queues.add(new MessageQueue(queue.get(0), queue.get(1), Integer.parseInt(queue.get(2))));
    }
    Collections.sort(queues);
    List<String> members = new ArrayList<>(question.members);
    Collections.sort(members);
    Map<String, Object> answer = new LinkedHashMap<>();
    List<List<Object>> sorted = new ArrayList<>();
    for (MessageQueue queue : queues) {
      sorted.add(List.of(queue.getTopic(), queue.getBrokerName(), queue.getQueueId()));
    }
    answer.put("queues", sorted);
    answer.put("members", members);
    for (AllocateMessageQueueStrategy strategy : strategies(question, queues)) {
      List<Object> shares = new ArrayList<>();
      for (String member : members) {
        shares.add(share(strategy, member, queues, members));
      }
      shares.add(share(strategy, STRANGER, queues, members));
      answer.put(strategy.getName(), shares);
    }
    return answer;
  }

  private static List<AllocateMessageQueueStrategy> strategies(
      Question question, List<MessageQueue> queues) {
    AllocateMessageQueueByConfig byConfig = new AllocateMessageQueueByConfig();
    byConfig.setMessageQueueList(question.configured.stream().map(queues::get).toList());
    AllocateMessageQueueByMachineRoom byRoom = new AllocateMessageQueueByMachineRoom();
    byRoom.setConsumeridcs(question.rooms);
    AllocateMessageQueueStrategy averagely = new AllocateMessageQueueAveragely();
    AllocateMessageQueueStrategy circle = new AllocateMessageQueueAveragelyByCircle();
    return List.of(
        averagely,
        circle,
        byConfig,
        byRoom,
        new AllocateMessageQueueConsistentHash(question.virtualNodes),
        new AllocateMachineRoomNearby(averagely, new BeforeTheAt()),
        new AllocateMachineRoomNearby(circle, new BeforeTheAt()));
  }

  /** Returns the places of a share in the sorted queues, or that it was refused. */
  private static Object share(
      AllocateMessageQueueStrategy strategy,
      String member,
      List<MessageQueue> queues,
      List<String> members) {
    try {
      return strategy.allocate(GROUP, member, queues, members).stream()
          .map(queues::indexOf)
          .toList();
    } catch (IllegalArgumentException refusal) {
      return "refused";
    }
  }
}
