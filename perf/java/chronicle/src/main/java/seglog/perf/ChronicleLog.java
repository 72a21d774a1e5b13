package seglog.perf;

import net.openhft.chronicle.bytes.Bytes;
import net.openhft.chronicle.bytes.SyncMode;
import net.openhft.chronicle.queue.ExcerptAppender;
import net.openhft.chronicle.queue.ExcerptTailer;
import net.openhft.chronicle.queue.impl.single.SingleChronicleQueue;
import net.openhft.chronicle.queue.impl.single.SingleChronicleQueueBuilder;
import net.openhft.chronicle.queue.rollcycles.LargeRollCycles;
import net.openhft.chronicle.wire.DocumentContext;

/** A queue of one file for the day, so that its indexes are those of the messages in a row. */
public final class ChronicleLog implements PeerLog {
  private final SingleChronicleQueue queue;
  private final ExcerptAppender appender;
  private final ExcerptTailer tailer;
  private final boolean isDurable;
  private final boolean isLoop;
  private final byte[] sink = new byte[1 << 16];
  private long first = -1;
  private long next = -1;

  /** Bytes that were handed out: it must not be possible to leave the reading out. */
  private long seen;

  ChronicleLog(String directory, boolean isDurable, boolean isLoop) {
    this.isDurable = isDurable;
    this.isLoop = isLoop;
    queue =
        SingleChronicleQueueBuilder.binary(directory)
            .rollCycle(LargeRollCycles.LARGE_DAILY)
            .syncMode(isDurable ? SyncMode.SYNC : SyncMode.NONE)
            .build();
    appender = queue.createAppender();
    tailer = queue.createTailer();
  }

  /** Answers requests until standard input ends. */
  public static void main(String[] args) throws Exception {
    PeerBench.serve(ChronicleLog::new);
  }

  @Override
  public int append(byte[][] bodies) {
    for (byte[] body : bodies) {
      try (DocumentContext document = appender.writingDocument()) {
        document.wire().bytes().write(body);
      }
    }
    if (isDurable) {
      appender.sync();
    }
    return bodies.length;
  }

  @Override
  public long count() {
    long last = queue.lastIndex();
    return last < 0 ? 0 : last - first() + 1;
  }

  private long first() {
    if (first < 0) {
      first = queue.firstIndex();
    }
    return first;
  }

  @Override
  public int readOn(int count, boolean isView) {
    if (next < 0) {
      tailer.moveToIndex(first());
      next = 0;
    }
    int found = read(count, isView);
    next = found < count ? -1 : next + found;
    return found;
  }

  @Override
  public int read(long place, int count, boolean isView) {
    tailer.moveToIndex(first() + place);
    int found = read(count, isView);
    if (found != count) {
      throw new IllegalStateException("nothing at " + place);
    }
    return found;
  }

  private int read(int count, boolean isView) {
    for (int found = 0; found < count; found++) {
      try (DocumentContext document = tailer.readingDocument()) {
        if (!document.isPresent()) {
          return found;
        }
        Bytes<?> bytes = document.wire().bytes();
        int length = (int) bytes.readRemaining();
        seen += length;
        if (isLoop) {
          byte[] body = new byte[length];
          bytes.read(body);
          seen += body[length - 1];
        } else if (!isView) {
          bytes.read(sink, 0, length);
        }
      }
    }
    return count;
  }

  @Override
  public void close() {
    queue.close();
  }
}
