package seglog.judge;

import java.nio.ByteBuffer;
import java.util.Random;
import org.apache.rocketmq.store.DefaultMessageStore;
import org.apache.rocketmq.store.GetMessageResult;

/** Reads what {@link BenchQueue} wrote: views only, bodies, or every byte copied. One thread at a time. */
final class BenchReader {
  private static final int PULL_COUNT = 32;

  /** Of records whose hosts have IPv4 addresses. */
  private static final int BODY_SIZE_AT = 84;

  private static final int READS_BETWEEN_LOOKS = 16;
  private static final byte[] SINK = new byte[8 << 20];

  private final DefaultMessageStore store;
  private final Request request;
  private final Random random = new Random(1);
  private final long[] next;
  private final long[] ends;
  private int turn;

  /** Bytes that were handed out: it must not be possible to leave the reading out. */
  private long seen;

  BenchReader(DefaultMessageStore store, Request request) throws Exception {
    this.store = store;
    this.request = request;
    next = new long[request.queues];
    ends = new long[request.queues];
    for (int queueId = 0; queueId < request.queues; queueId++) {
      ends[queueId] = store.getMaxOffsetInQueue(BenchQueue.TOPIC, queueId);
    }
  }

  /** Returns how many messages were read; look at the time now and then only. */
  long readFor(double seconds) {
    boolean isRandom = request.workload.equals("random");
    long deadline = System.nanoTime() + (long) (seconds * 1e9);
    long read = 0;
    while (System.nanoTime() < deadline) {
      for (int each = 0; each < READS_BETWEEN_LOOKS; each++) {
        read += isRandom ? readOnce(0, random.nextLong(ends[0]), 1) : pull();
      }
    }
    if (seen == 0) {
      throw new IllegalStateException("nothing was handed out");
    }
    return read;
  }

  private int pull() {
    int queueId = turn++ % request.queues;
    int found = readOnce(queueId, next[queueId], PULL_COUNT);
    next[queueId] += found;
    if (next[queueId] >= ends[queueId]) {
      next[queueId] = 0;
    }
    return found;
  }

  /** As an application has it; MessageDecoder, which makes a message of all else too, takes longer. */
  private static byte[] bodyOf(ByteBuffer record) {
    byte[] body = new byte[record.getInt(BODY_SIZE_AT)];
    record.position(BODY_SIZE_AT + Integer.BYTES);
    record.get(body);
    return body;
  }

  int readOnce(int queueId, long queueOffset, int count) {
    GetMessageResult result =
        store.getMessage("bench", BenchQueue.TOPIC, queueId, queueOffset, count, null);
    try {
      for (ByteBuffer record : result.getMessageBufferList()) {
        seen += record.remaining();
        if (request.loop) {
          byte[] body = bodyOf(record);
          seen += body[body.length - 1];
        } else if (!request.view) {
          record.get(SINK, 0, record.remaining());
        }
      }
      if (result.getMessageCount() == 0) {
        throw new IllegalStateException(result.getStatus() + " at " + queueOffset);
      }
      return result.getMessageCount();
    } finally {
      result.release();
    }
  }
}
