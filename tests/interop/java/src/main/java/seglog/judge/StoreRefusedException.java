package seglog.judge;

import org.apache.rocketmq.store.DefaultMessageStore;

/** The real store would not load or start. */
final class StoreRefusedException extends Exception {
  private static final long serialVersionUID = 1L;

  private final transient DefaultMessageStore engine;

  StoreRefusedException(String message, Throwable cause, DefaultMessageStore engine) {
    super(message, cause);
    this.engine = engine;
  }

  /**
   * Does what BrokerStartup does after a failed start: it exits, and its exit hook shuts the store
   * down, which flushes a checkpoint and may delete the abort file although another process runs.
   */
  void shutDownAsBrokerDoes() {
    Thread.currentThread().interrupt(); // Ends its sleep of three seconds at once.
    engine.shutdown();
    Thread.interrupted();
  }
}
