package seglog.clients;

import java.lang.management.LockInfo;
import java.lang.management.ManagementFactory;
import java.lang.management.ThreadInfo;

/**
 * Ends the pause of each shutdown of a client by this thread, while open.
 *
 * <p>A client waits for a thread that looks every three seconds whether it is to stop. Here that is
 * woken, and no other one: those of clients that live on are at times amid a request, and an
 * interrupt would cost them their connection.
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
        ThreadInfo info = ManagementFactory.getThreadMXBean().getThreadInfo(closing.getId());
        LockInfo joined = info == null ? null : info.getLockInfo();
        if (joined != null) {
          wake(joined.getIdentityHashCode());
        }
        Thread.sleep(LOOK_MS);
      }
    } catch (InterruptedException end) {
      // close() says so.
    }
  }

  /** Wakes the thread that a lock is; one that is joined is the lock of who joins it. */
  private static void wake(int lock) {
    for (Thread thread : Thread.getAllStackTraces().keySet()) {
      if (System.identityHashCode(thread) == lock
          && thread.getName().equals(WAITED_FOR)
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
