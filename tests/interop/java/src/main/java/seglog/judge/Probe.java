package seglog.judge;

import java.util.ArrayList;
import java.util.List;
import org.apache.rocketmq.common.BoundaryType;
import org.apache.rocketmq.store.DefaultMessageStore;
import org.apache.rocketmq.store.GetMessageResult;
import org.apache.rocketmq.store.SelectMappedBufferResult;

/** A question about one queue: messages from an offset, or the offset at a time. */
final class Probe {
  String topic;
  int queueId;

  /** getMessage: where to start. */
  long queueOffset;

  /** getMessage: how many messages at most. */
  int maxCount = 32;

  /** Offset by time: when; null asks for messages. */
  Long timestampMs;

  /** Offset by time: {@code lower} or {@code upper}. */
  String boundary = "lower";

  void ask(DefaultMessageStore store, Answers answers) {
    if (timestampMs == null) {
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
      answers
          .line("get")
          .put("status", result.getStatus().toString())
          .put("nextOffset", result.getNextBeginOffset())
          .put("minOffset", result.getMinOffset())
          .put("maxOffset", result.getMaxOffset())
          .put("phyOffsets", phyOffsets)
          .send();
    } finally {
      result.release();
    }
  }
}
