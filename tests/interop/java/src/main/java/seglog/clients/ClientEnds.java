package seglog.clients;

/**
 * Ends the pause of each shutdown of a client by this thread, while open.
 *
 * <p>A client waits for a thread that looks every three seconds whether it is to stop. Here that is
 * woken, and only while a client waits for it: a broker in this process, which has such threads too,
 * notices nothing.
 */
public final class ClientEnds implements AutoCloseable {
  private static final String WAITED_FOR = "NettyEventExecutor";
  private static final long LOOK_MS = 20;

  private final Thread closing = Thread.currentThread();
  private final Thread looking = new Thread(this::look, "client-ends");

  private ClientEnds() {}

  /** Begins to look at what this thread waits for. */
  public static ClientEnds begin() {
    ClientEnds ends = new ClientEnds();
    ends.looking.setDaemon(true);
    ends.looking.start();
    return ends;
  }

  private void look() {
    try {
      while (true) {
        if (isShuttingDown()) {
          wake();
        }
        Thread.sleep(LOOK_MS);
      }
    } catch (InterruptedException end) {
      // close() says so.
    }
  }

  private boolean isShuttingDown() {
    for (StackTraceElement call : closing.getStackTrace()) {
      if (call.getClassName().endsWith(".NettyRemotingClient")) {
        return call.getMethodName().equals("shutdown");
      }
    }
    return false;
  }

  private static void wake() {
    for (Thread thread : Thread.getAllStackTraces().keySet()) {
      if (thread.getName().equals(WAITED_FOR)
          && thread.getState() == Thread.State.TIMED_WAITING) {
        thread.interrupt();
      }
    }
  }

  @Override
  public void close() {
    looking.interrupt();
  }
}
