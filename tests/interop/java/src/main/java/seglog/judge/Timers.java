package seglog.judge;

import java.io.IOException;
import org.apache.rocketmq.store.DefaultMessageStore;
import org.apache.rocketmq.store.stats.BrokerStatsManager;
import org.apache.rocketmq.store.timer.TimerCheckpoint;
import org.apache.rocketmq.store.timer.TimerMessageStore;
import org.apache.rocketmq.store.timer.TimerMetrics;

/** Runs the timer of a store, as a broker does, until it has caught up and some time went by. */
final class Timers {
  private Timers() {}

  /** A {@code timer} line: whether it loaded, and how far it came. */
  static void run(DefaultMessageStore store, double seconds, Answers answers) throws Exception {
    String config = store.getMessageStoreConfig().getStorePathRootDir() + "/config/";
    TimerMessageStore timer;
    try {
      timer =
          new TimerMessageStore(
              store,
              store.getMessageStoreConfig(),
              new TimerCheckpoint(config + "timercheck"),
              new TimerMetrics(config + "timermetrics"),
              new BrokerStatsManager("judge", true));
    } catch (IOException | RuntimeException refusal) {
      refused(refusal.toString(), answers);
      return;
    }
    if (!timer.load()) {
      refused("load() returned false", answers);
      return;
    }
    store.setTimerMessageStore(timer);
    long queueOffset = timer.getQueueOffset();
    timer.setShouldRunningDequeue(true); // As a broker does that became a master.
    timer.start();
    Thread.sleep((long) (seconds * 1000));
    timer.shutdown();
    answers
        .line("timer")
        .put("error", null)
        .put("queueOffsetBefore", queueOffset)
        .put("queueOffset", timer.getQueueOffset())
        .send();
  }

  private static void refused(String error, Answers answers) {
    answers.line("timer").put("error", error).send();
  }
}
