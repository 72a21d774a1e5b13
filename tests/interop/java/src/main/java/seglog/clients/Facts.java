package seglog.clients;

import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.stream.Collectors;
import org.apache.rocketmq.client.exception.MQBrokerException;
import org.apache.rocketmq.client.exception.MQClientException;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageExt;

/** What two brokers have in common: no ids, times, addresses, but whether they are there. */
final class Facts {
  private static final int LONGEST_SHOWN = 100;
  private static final Set<String> VARYING =
      Set.of(
          "UNIQ_KEY",
          "ORIGIN_MESSAGE_ID",
          "DLQ_ORIGIN_MESSAGE_ID",
          "MIN_OFFSET",
          "MAX_OFFSET",
          "CONSUME_START_TIME",
          "CORRELATION_ID",
          "REPLY_TO_CLIENT",
          "ARRIVE_TIME",
          "PUSH_REPLY_TIME");

  private Facts() {}

  /** What may throw. */
  interface Step {
    Object run() throws Exception;
  }

  static Map<String, Object> of(SendResult sent) {
    Map<String, Object> facts = new LinkedHashMap<>();
    facts.put("status", sent.getSendStatus().name());
    facts.put("queue", sent.getMessageQueue().toString());
    facts.put("queueOffset", sent.getQueueOffset());
    facts.put("ids", ids(sent.getMsgId()));
    facts.put("offsetIds", ids(sent.getOffsetMsgId()));
    facts.put("isTransaction", sent.getTransactionId() != null);
    facts.put("region", sent.getRegionId());
    facts.put("isTraced", sent.isTraceOn());
    return facts;
  }

  private static List<Integer> ids(String text) {
    return text == null ? null : Arrays.stream(text.split(",")).map(String::length).toList();
  }

  static Map<String, Object> of(MessageExt message) {
    Map<String, Object> facts = new LinkedHashMap<>();
    facts.put("topic", message.getTopic());
    facts.put("queueId", message.getQueueId());
    facts.put("queueOffset", message.getQueueOffset());
    facts.put("body", body(message));
    facts.put("bodyCrc", message.getBodyCRC());
    facts.put("tags", message.getTags());
    facts.put("keys", message.getKeys());
    facts.put("flag", message.getFlag());
    facts.put("sysFlag", message.getSysFlag());
    facts.put("reconsumeTimes", message.getReconsumeTimes());
    facts.put("preparedTransactionOffset", message.getPreparedTransactionOffset());
    facts.put("broker", message.getBrokerName());
    facts.put("properties", properties(message));
    return facts;
  }

  static Map<String, String> properties(Message message) {
    Map<String, String> properties = new TreeMap<>(message.getProperties());
    properties.remove("__CRC32#"); // of a broker that is set so, as ours is
    properties.replaceAll((name, value) -> VARYING.contains(name) ? "" : value);
    return properties;
  }

  /** Returns a body, or its length and hash. */
  static String body(Message message) {
    byte[] body = message.getBody();
    return body.length <= LONGEST_SHOWN
        ? new String(body, StandardCharsets.UTF_8)
        : body.length + " bytes, hash " + Arrays.hashCode(body);
  }

  static Map<Integer, List<Map<String, Object>>> ofQueues(Map<Integer, List<MessageExt>> queues) {
    return queues.entrySet().stream()
        .collect(
            Collectors.toMap(
                Map.Entry::getKey,
                queue -> queue.getValue().stream().map(Facts::of).toList(),
                (one, other) -> one,
                TreeMap::new));
  }

  static Map<Integer, List<String>> bodiesOf(Map<Integer, List<MessageExt>> queues) {
    Map<Integer, List<String>> bodies = new TreeMap<>();
    queues.forEach((id, messages) -> bodies.put(id, messages.stream().map(Facts::body).toList()));
    return bodies;
  }

  /** Returns what a step throws, or what it returns where it does not. */
  static Object outcome(Step step) {
    try {
      Object returned = step.run();
      return returned instanceof SendResult sent ? of(sent) : returned;
    } catch (Exception error) {
      return failure(error);
    }
  }

  /** Returns what a step throws; it has to. */
  static Map<String, Object> failureOf(Step step) {
    try {
      throw new IllegalStateException("it returned " + step.run());
    } catch (Exception error) {
      return failure(error);
    }
  }

  static Map<String, Object> failure(Throwable error) {
    Map<String, Object> facts = new LinkedHashMap<>();
    facts.put("type", error.getClass().getSimpleName());
    if (error instanceof MQBrokerException broker) {
      facts.put("code", broker.getResponseCode());
      facts.put("words", broker.getErrorMessage());
    } else if (error instanceof MQClientException client) {
      facts.put("code", client.getResponseCode());
      facts.put("words", client.getErrorMessage());
    } else {
      facts.put("words", error.getMessage());
    }
    if (error.getCause() != null && error.getCause() != error) {
      facts.put("cause", failure(error.getCause()));
    }
    return facts;
  }
}
