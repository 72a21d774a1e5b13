package seglog.perf;

/** What the workloads need of a log, whose messages are numbered from 0. One thread at a time. */
interface PeerLog extends AutoCloseable {
  /** Appends one message or a batch; returns how many. */
  int append(byte[][] bodies);

  /** Returns how many messages it holds. */
  long count();

  /** Reads on from where it stopped, from the start again after the end; returns how many. */
  int readOn(int count, boolean isView);

  /** Reads at a place; returns how many, always as many as were asked for. */
  int read(long place, int count, boolean isView);

  @Override
  void close();
}
