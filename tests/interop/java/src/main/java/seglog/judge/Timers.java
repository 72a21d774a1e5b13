package seglog.judge;

import java.io.IOException;
import org.apache.rocketmq.store.DefaultMessageStore;
import org.apache.rocketmq.store.stats.BrokerStatsManager;
import org.apache.rocketmq.store.timer.TimerCheckpoint;
import org.apache.rocketmq.store.timer.TimerMessageStore;
import org.apache.rocketmq.store.timer.TimerMetrics;

/** The timer of a store, which runs as in a broker; or why it does not. */
final class Timers {
  private final TimerMessageStore timer;
  private final String refusal;
  private final long queueOffset;

  private Timers(TimerMessageStore timer, String refusal) {
    this.timer = timer;
    this.refusal = refusal;
    this.queueOffset = timer == null ? 0 : timer.getQueueOffset();
  }

  /** Starts the timer of a store. */
  static Timers start(DefaultMessageStore store) throws Exception {
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
      return new Timers(null, refusal.toString());
    }
    if (!timer.load()) {
      return new Timers(null, "load() returned false");
    }
    store.setTimerMessageStore(timer);
    Timers started = new Timers(timer, null);
    timer.setShouldRunningDequeue(true); // As a broker does that became a master.
    timer.start();
    return started;
  }

  /** Stops it, and puts a {@code timer} line: whether it loaded, and how far it came. */
  void stop(Answers answers) {
    if (timer == null) {
      answers.line("timer").put("error", refusal).send();
      return;
    }
    timer.shutdown();
    answers
        .line("timer")
        .put("error", null)
        .put("queueOffsetBefore", queueOffset)
        .put("queueOffset", timer.getQueueOffset())
        .send();
  }
}
