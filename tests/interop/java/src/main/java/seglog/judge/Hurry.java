package seglog.judge;

import java.util.Map;
import java.util.regex.Pattern;

/**
 * Ends the pauses of a broker's shutdown while open.
 *
 * <p>The broker waits for threads that look every few seconds whether they are to stop, one after the
 * other, and the store sleeps for running requests: 17 seconds, in which nothing is written. Here
 * threads that write no files are woken, and those that could: that of POP, which nothing uses
 * here, and that which flushes the log, which is mapped, and no interrupt harms it. The store's
 * sleep is cut short; nothing else is.
 */
final class Hurry implements AutoCloseable {
  private static final Pattern IDLE =
      Pattern.compile(
          "NettyEventExecutor|ClientHouse[Kk]eeping.*|ServerHouseKeepingService|PopReviveService_.*"
              + "|PopLongPollingService|QueueLockManager|PullRequestHoldService|BroadcastOffsetManager"
              + "|TopicQueueMappingCleanService|ColdData.*|FileWatchService|PopBufferMergeService"
              + "|HAConnectionStateNotificationService|TransactionalMessageCheckService"
              + "|FlushRealTimeService");
  private static final long LOOK_MS = 20;

  private final Thread closing = Thread.currentThread();
  private final Thread looking = new Thread(this::look, "hurry");

  private Hurry() {}

  static Hurry begin() {
    Hurry hurry = new Hurry();
    hurry.looking.setDaemon(true);
    hurry.looking.start();
    return hurry;
  }

  private void look() {
    try {
      while (true) {
        wake();
        Thread.sleep(LOOK_MS);
      }
    } catch (InterruptedException end) {
      // close() says so.
    }
  }

  private void wake() {
    for (Map.Entry<Thread, StackTraceElement[]> entry : Thread.getAllStackTraces().entrySet()) {
      Thread thread = entry.getKey();
      boolean isWaiting = thread.getState() == Thread.State.TIMED_WAITING;
      if (isWaiting && (thread == closing ? isStorePause(entry.getValue()) : isIdle(thread))) {
        thread.interrupt();
      }
    }
  }

  private static boolean isIdle(Thread thread) {
    return IDLE.matcher(thread.getName()).matches();
  }

  private static boolean isStorePause(StackTraceElement[] stack) {
    return stack.length > 1
        && stack[0].getMethodName().startsWith("sleep")
        && stack[1].getClassName().endsWith(".DefaultMessageStore")
        && stack[1].getMethodName().equals("shutdown");
  }

  @Override
  public void close() throws InterruptedException {
    looking.interrupt();
    looking.join();
    Thread.interrupted(); // A pause may have ended by itself just when it was cut short.
  }
}
