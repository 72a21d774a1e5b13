package seglog.judge;

import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.util.Map;
import java.util.TreeMap;
import org.apache.rocketmq.store.DefaultMessageStore;
import org.apache.rocketmq.store.kv.CompactionLog;
import org.apache.rocketmq.store.kv.CompactionPositionMgr;
import org.apache.rocketmq.store.kv.CompactionStore;

/**
 * Runs at once what RocketMQ runs for each compaction queue every quarter of an hour or later.
 *
 * <p>It logs its failures and throws nothing: the position tells whether it compacted.
 */
final class Compaction {
  private final CompactionStore store;
  private final Answers answers;

  Compaction(DefaultMessageStore store, Answers answers) throws ReflectiveOperationException {
    // A getter came with 5.4.0.
    this.store = (CompactionStore) privateField(DefaultMessageStore.class, "compactionStore", store);
    this.answers = answers;
  }

  /** A {@code compacted} line for each queue, with how far it was compacted before and after. */
  void run() throws ReflectiveOperationException {
    Method compact = CompactionLog.class.getDeclaredMethod("doCompaction");
    compact.setAccessible(true);
    for (Map.Entry<String, CompactionLog> queue : new TreeMap<>(logs()).entrySet()) {
      Long before = positions().get(queue.getKey());
      int files = queue.getValue().getLog().getMappedFiles().size();
      compact.invoke(queue.getValue());
      answers
          .line("compacted")
          .put("queue", queue.getKey())
          .put("positionBefore", before)
          .put("positionAfter", positions().get(queue.getKey()))
          .put("filesBefore", files)
          .put("filesAfter", queue.getValue().getLog().getMappedFiles().size())
          .send();
    }
  }

  private Map<String, Long> positions() {
    CompactionPositionMgr positions = store.getPositionMgr();
    return positions.getQueueOffsetMap();
  }

  @SuppressWarnings("unchecked")
  private Map<String, CompactionLog> logs() throws ReflectiveOperationException {
    return (Map<String, CompactionLog>)
        privateField(CompactionStore.class, "compactionLogTable", store);
  }

  private static Object privateField(Class<?> type, String name, Object of)
      throws ReflectiveOperationException {
    Field field = type.getDeclaredField(name);
    field.setAccessible(true);
    return field.get(of);
  }
}
