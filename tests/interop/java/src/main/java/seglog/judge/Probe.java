package seglog.judge;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.apache.rocketmq.common.BoundaryType;
import org.apache.rocketmq.common.message.MessageDecoder;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.store.DefaultMessageStore;
import org.apache.rocketmq.store.GetMessageResult;
import org.apache.rocketmq.store.QueryMessageResult;
import org.apache.rocketmq.store.SelectMappedBufferResult;

/**
 * A question: messages of a queue from an offset, the offset at a time, or the messages of a key.
 */
final class Probe {
  String topic;
  int queueId;

  /** getMessage: where to start. */
  long queueOffset;

  /** getMessage: how many messages at most. */
  int maxCount = 32;

  /** getMessage: whether to state the messages too, as a client decodes them. */
  boolean decode;

  /** Messages of a key: which; null asks the queue. */
  String key;

  /** Offset by time: when; null asks for messages. */
  Long timestampMs;

  /** Offset by time: {@code lower} or {@code upper}. */
  String boundary = "lower";

  void ask(DefaultMessageStore store, Answers answers) {
    if (key != null) {
      askKey(store, answers);
    } else if (timestampMs == null) {
      askMessages(store, answers);
    } else {
      long offset =
          store.getOffsetInQueueByTime(topic, queueId, timestampMs, BoundaryType.getType(boundary));
      answers.line("offset").put("queueOffset", offset).send();
    }
  }

  private void askMessages(DefaultMessageStore store, Answers answers) {
    GetMessageResult result =
        store.getMessage("judge", topic, queueId, queueOffset, maxCount, null);
    try {
      List<Long> phyOffsets = new ArrayList<>();
      for (SelectMappedBufferResult record : result.getMessageMapedList()) {
        phyOffsets.add(record.getStartOffset());
      }
      Answers.Line line =
          answers
              .line("get")
              .put("status", result.getStatus().toString())
              .put("nextOffset", result.getNextBeginOffset())
              .put("minOffset", result.getMinOffset())
              .put("maxOffset", result.getMaxOffset())
              .put("phyOffsets", phyOffsets);
      if (decode) {
        line.put("messages", decoded(result.getMessageMapedList()));
      }
      line.send();
    } finally {
      result.release();
    }
  }

  private void askKey(DefaultMessageStore store, Answers answers) {
    QueryMessageResult result = store.queryMessage(topic, key, maxCount, 0, Long.MAX_VALUE);
    try {
      answers.line("query").put("messages", decoded(result.getMessageMapedList())).send();
    } finally {
      result.release();
    }
  }

  private static List<Map<String, Object>> decoded(List<SelectMappedBufferResult> records) {
    List<Map<String, Object>> messages = new ArrayList<>();
    for (SelectMappedBufferResult record : records) {
      MessageExt message = MessageDecoder.decode(record.getByteBuffer(), true, true);
      messages.add(message == null ? null : MessageFields.of(message));
    }
    return messages;
  }
}
