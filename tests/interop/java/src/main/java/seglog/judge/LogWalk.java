package seglog.judge;

import java.nio.ByteBuffer;
import org.apache.rocketmq.common.sysflag.MessageSysFlag;
import org.apache.rocketmq.store.CommitLog;
import org.apache.rocketmq.store.DefaultMessageStore;
import org.apache.rocketmq.store.DispatchRequest;
import org.apache.rocketmq.store.SelectMappedBufferResult;

/**
 * Walks the commit log from its first to its last byte with RocketMQ's own record check: a {@code
 * log} line for each record and each end-of-file filler, {@code walkStop} where it cannot go on.
 */
final class LogWalk {
  private static final int PREFIX_BYTES = 8;
  private static final long DONE = Long.MAX_VALUE;

  private final DefaultMessageStore store;
  private final Answers answers;

  LogWalk(DefaultMessageStore store, Answers answers) {
    this.store = store;
    this.answers = answers;
  }

  void run() {
    long position = store.getMinPhyOffset();
    long end = store.getMaxPhyOffset();
    while (position < end) {
      position = step(position);
    }
  }

  /** Returns where the next record starts, or {@link #DONE}. */
  private long step(long position) {
    SelectMappedBufferResult rest = store.getCommitLog().getData(position);
    if (rest == null) {
      return stop(position, "no data");
    }
    try {
      ByteBuffer buffer = rest.getByteBuffer();
      if (buffer.remaining() < PREFIX_BYTES) {
        return stop(position, "short");
      }
      return sendRecord(position, buffer);
    } finally {
      rest.release();
    }
  }

  private long sendRecord(long position, ByteBuffer buffer) {
    int magic = buffer.getInt(4);
    Answers.Line line =
        answers
            .line("log")
            .put("pos", position)
            .put("size", buffer.getInt(0))
            .put("magic", String.format("%08x", magic));
    if (magic == CommitLog.BLANK_MAGIC_CODE) {
      line.send();
      long segmentBytes = store.getMessageStoreConfig().getMappedFileSizeCommitLog();
      return (position / segmentBytes + 1) * segmentBytes;
    }
    DispatchRequest record =
        store.getCommitLog().checkMessageAndReturnSize(buffer.slice(), true, false, true);
    line.put("ok", record.isSuccess()).put("msgSize", record.getMsgSize());
    if (record.getMsgSize() <= 0) {
      line.send();
      return DONE;
    }
    line.put("topic", record.getTopic())
        .put("queueId", record.getQueueId())
        .put("cqOffset", record.getConsumeQueueOffset())
        .put("tagsCode", record.getTagsCode())
        .put("sysFlag", record.getSysFlag())
        .put("txType", MessageSysFlag.getTransactionValue(record.getSysFlag()) >> 2)
        .put("keys", record.getKeys())
        .put("uniqKey", record.getUniqKey())
        .send();
    return position + record.getMsgSize();
  }

  private long stop(long position, String why) {
    answers.line("walkStop").put("pos", position).put("why", why).send();
    return DONE;
  }
}
