package seglog.judge;

import java.io.IOException;
import java.lang.reflect.Field;
import java.util.HashMap;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.TimeUnit;
import org.apache.rocketmq.common.BrokerConfig;
import org.apache.rocketmq.common.MixAll;
import org.apache.rocketmq.common.TopicConfig;
import org.apache.rocketmq.store.DefaultMessageStore;
import org.apache.rocketmq.store.MessageArrivingListener;
import org.apache.rocketmq.store.RocksDBMessageStore;
import org.apache.rocketmq.store.config.MessageStoreConfig;
import org.apache.rocketmq.store.stats.BrokerStatsManager;

/**
 * A loaded and started store of files, or of queues in RocksDB, as its settings say; closing it is
 * RocketMQ's own clean shutdown.
 */
final class RealStore implements AutoCloseable {
  private static final long AWAIT_DISPATCH_NANOS = TimeUnit.SECONDS.toNanos(60);
  private static final String[] SCHEDULERS = {
    "scheduledExecutorService", "scheduledCleanQueueExecutorService"
  };

  private final DefaultMessageStore engine;

  private RealStore(DefaultMessageStore engine) {
    this.engine = engine;
  }

  /**
   * Loads and starts the store in {@code request.dir}.
   *
   * <p>RocketMQ recovers in load() and takes its lock only in start(): a directory that another
   * process holds is read, cut and re-dispatched before the lock refuses.
   */
  static RealStore open(Request request) throws Exception {
    return open(request, configure(request));
  }

  /**
   * Does the same for a store that is closed soon, unless it is to end as in a crash.
   *
   * <p>Its thread that flushes the log waits where a shutdown wakes it, and does not sleep half a
   * second.
   */
  static RealStore openBriefly(Request request) throws Exception {
    MessageStoreConfig config = configure(request);
    if (!request.halt) {
      config.setFlushCommitLogTimed(false);
    }
    return open(request, config);
  }

  private static RealStore open(Request request, MessageStoreConfig config) throws Exception {
    ConcurrentMap<String, TopicConfig> topics = new ConcurrentHashMap<>();
    request.topics.forEach((name, attributes) -> topics.put(name, topic(name, attributes)));
    BrokerConfig broker = new BrokerConfig();
    BrokerStatsManager stats = new BrokerStatsManager("judge", true);
    MessageArrivingListener silent =
        (topic, queueId, offset, tagsCode, storeTime, bitMap, properties) -> {};
    DefaultMessageStore engine =
        config.isEnableRocksDBStore()
            ? new RocksDBMessageStore(config, stats, silent, broker, topics)
            : new DefaultMessageStore(config, stats, silent, broker, topics);
    if (!engine.load()) {
      throw new StoreRefusedException("load() returned false", null, engine);
    }
    try {
      engine.start();
    } catch (RuntimeException | IOException refusal) {
      throw new StoreRefusedException(refusal.toString(), refusal, engine);
    }
    return new RealStore(engine);
  }

  private static TopicConfig topic(String name, Map<String, String> attributes) {
    TopicConfig topic = new TopicConfig(name);
    topic.setAttributes(new HashMap<>(attributes));
    return topic;
  }

  DefaultMessageStore engine() {
    return engine;
  }

  /** Waits until every record of the log is in its queue and in the index. */
  void awaitDispatch() throws InterruptedException {
    awaitDispatchPosition();
    Thread.sleep(20); // The position moves on before the last record is wholly dispatched.
  }

  /** Waits until dispatch has come to the end of the log. */
  void awaitDispatchPosition() throws InterruptedException {
    long deadline = System.nanoTime() + AWAIT_DISPATCH_NANOS;
    while (engine.dispatchBehindBytes() != 0) {
      if (System.nanoTime() > deadline) {
        throw new IllegalStateException(engine.dispatchBehindBytes() + " bytes not dispatched");
      }
      Thread.sleep(1);
    }
  }

  /**
   * Shuts the store down as the broker does, without its sleep of three seconds.
   *
   * <p>That sleep waits for running requests, and here are none. A pending interrupt ends it at
   * once; the background tasks, which it also covers, are awaited before.
   */
  @Override
  public void close() {
    for (String name : SCHEDULERS) {
      stop(scheduler(name));
    }
    Thread.currentThread().interrupt();
    engine.shutdown();
    Thread.interrupted();
    if (!engine.isShutdown()) {
      throw new IllegalStateException("the store did not shut down");
    }
  }

  private ExecutorService scheduler(String name) {
    try {
      Field field = DefaultMessageStore.class.getDeclaredField(name);
      field.setAccessible(true);
      return (ExecutorService) field.get(engine);
    } catch (ReflectiveOperationException error) {
      throw new IllegalStateException(error);
    }
  }

  private static void stop(ExecutorService scheduler) {
    scheduler.shutdown();
    try {
      scheduler.awaitTermination(10, TimeUnit.SECONDS);
    } catch (InterruptedException error) {
      throw new IllegalStateException(error);
    }
  }

  /** Returns the settings of a store in the directory of the request. */
  static MessageStoreConfig configure(Request request) {
    MessageStoreConfig config = new MessageStoreConfig();
    config.setStorePathRootDir(request.dir);
    config.setStorePathCommitLog(request.dir + "/commitlog");
    config.setMappedFileSizeCommitLog(request.segmentBytes);
    config.setMappedFileSizeConsumeQueue(request.queueBytes);
    config.setHaListenPort(0); // Any free port: replication is always on, and never used here.
    keepEverything(config);
    config.setMaxTransferBytesOnMessageInMemory(64 << 20);
    config.setMaxTransferBytesOnMessageInDisk(64 << 20);
    config.setMaxTransferCountOnMessageInMemory(4096);
    config.setMaxTransferCountOnMessageInDisk(4096);
    config.setOsPageCacheBusyTimeOutMills(60_000);
    applyFurther(config, request.config);
    return config;
  }

  /** Retention must not delete old files under a test, nor a full disk refuse its writes. */
  private static void keepEverything(MessageStoreConfig config) {
    config.setCleanFileForciblyEnable(false);
    config.setFileReservedTime(240_000);
    config.setDiskMaxUsedSpaceRatio(95);
  }

  /** Sets properties by their names in broker.conf. */
  static void applyFurther(Object config, Map<String, String> further) {
    Properties known = MixAll.object2Properties(config);
    Properties properties = new Properties();
    further.forEach(
        (name, value) -> {
          if (!known.containsKey(name)) {
            throw new IllegalArgumentException(config.getClass().getSimpleName() + " has no " + name);
          }
          properties.setProperty(name, value);
        });
    MixAll.properties2Object(properties, config);
  }
}
