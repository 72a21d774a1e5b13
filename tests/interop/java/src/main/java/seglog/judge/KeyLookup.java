package seglog.judge;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.rocketmq.common.message.MessageConst;
import org.apache.rocketmq.common.message.MessageDecoder;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.store.DefaultMessageStore;
import org.apache.rocketmq.store.QueryMessageResult;
import org.apache.rocketmq.store.SelectMappedBufferResult;

/** Looks a message up by each of its keys in the index. */
final class KeyLookup {
  private static final int MAX_HITS = 64;

  private final DefaultMessageStore store;

  KeyLookup(DefaultMessageStore store) {
    this.store = store;
  }

  /** Returns, for each key, how often it hit: n &gt; 0 when one is the message, else -n-1. */
  Map<String, Integer> lookUp(MessageExt message) {
    List<String> keys = new ArrayList<>();
    if (message.getKeys() != null) {
      keys.addAll(List.of(message.getKeys().split(MessageConst.KEY_SEPARATOR)));
    }
    String uniqueKey = message.getProperty(MessageConst.PROPERTY_UNIQ_CLIENT_MESSAGE_ID_KEYIDX);
    if (uniqueKey != null) {
      keys.add(uniqueKey);
    }
    Map<String, Integer> found = new LinkedHashMap<>();
    keys.forEach(key -> found.put(key, hits(message, key)));
    return found;
  }

  private int hits(MessageExt message, String key) {
    QueryMessageResult result;
    try {
      result = store.queryMessage(message.getTopic(), key, MAX_HITS, 0, Long.MAX_VALUE);
    } catch (OutOfMemoryError error) {
      return -1; // RocketMQ makes room for any body that a damaged record states
    }
    if (result == null) {
      return -1;
    }
    try {
      int hits = 0;
      boolean isAmong = false;
      for (SelectMappedBufferResult record : result.getMessageMapedList()) {
        hits++;
        MessageExt hit = MessageDecoder.decode(record.getByteBuffer(), false, false);
        isAmong |= hit != null && hit.getCommitLogOffset() == message.getCommitLogOffset();
      }
      return isAmong ? hits : -hits - 1;
    } finally {
      result.release();
    }
  }
}
