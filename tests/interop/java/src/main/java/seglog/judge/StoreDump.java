package seglog.judge;

import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentMap;
import org.apache.rocketmq.common.message.MessageDecoder;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.store.DefaultMessageStore;
import org.apache.rocketmq.store.SelectMappedBufferResult;
import org.apache.rocketmq.store.StoreCheckpoint;
import org.apache.rocketmq.store.queue.ConsumeQueueInterface;
import org.apache.rocketmq.store.queue.CqUnit;
import org.apache.rocketmq.store.queue.ReferredIterator;

/**
 * Everything an open store serves: a {@code store} line, a {@code queue} line for each queue, a
 * {@code msg} line for each unit of each queue, and the {@link LogWalk}.
 */
final class StoreDump {
  private final DefaultMessageStore store;
  private final Answers answers;
  private final List<ConsumeQueueInterface> queues = new ArrayList<>();

  StoreDump(DefaultMessageStore store, Answers answers) {
    this.store = store;
    this.answers = answers;
    Map<String, ConcurrentMap<Integer, ConsumeQueueInterface>> byTopic =
        new TreeMap<>(store.getConsumeQueueTable());
    byTopic.values().forEach(byId -> queues.addAll(new TreeMap<>(byId).values()));
  }

  void run(boolean hadAbort) throws Exception {
    sendStore(hadAbort);
    for (ConsumeQueueInterface queue : queues) {
      sendQueue(queue);
    }
    for (ConsumeQueueInterface queue : queues) {
      sendMessages(queue);
    }
    new LogWalk(store, answers).run();
  }

  private void sendStore(boolean hadAbort) {
    StoreCheckpoint checkpoint = store.getStoreCheckpoint();
    answers
        .line("store")
        .put("abortBefore", hadAbort)
        .put("minPhyOffset", store.getMinPhyOffset())
        .put("maxPhyOffset", store.getMaxPhyOffset())
        .put("confirmOffset", store.getConfirmOffset())
        .put("earliestMessageTime", earliestMessageTime())
        .put("ckPhysic", checkpoint.getPhysicMsgTimestamp())
        .put("ckLogics", checkpoint.getLogicsMsgTimestamp())
        .put("ckIndex", checkpoint.getIndexMsgTimestamp())
        .put("ckMasterFlushed", checkpoint.getMasterFlushedOffset())
        .put("ckConfirm", checkpoint.getConfirmPhyOffset())
        .send();
  }

  /** Null where RocketMQ throws: it reads too little of a first record with an IPv6 born host. */
  private Long earliestMessageTime() {
    try {
      return store.getEarliestMessageTime();
    } catch (IndexOutOfBoundsException error) {
      return null;
    }
  }

  private void sendQueue(ConsumeQueueInterface queue) throws Exception {
    answers
        .line("queue")
        .put("topic", queue.getTopic())
        .put("queueId", queue.getQueueId())
        .put("cqType", queue.getCQType().toString())
        .put("minOffset", store.getMinOffsetInQueue(queue.getTopic(), queue.getQueueId()))
        .put("maxOffset", store.getMaxOffsetInQueue(queue.getTopic(), queue.getQueueId()))
        .put("cqMin", queue.getMinOffsetInQueue())
        .put("cqMax", queue.getMaxOffsetInQueue())
        .put("cqMinLogicOffset", queue.getMinLogicOffset())
        .put("cqMaxPhysicOffset", queue.getMaxPhysicOffset())
        .put("messageTotalInQueue", queue.getMessageTotalInQueue())
        .send();
  }

  /** Walks a queue; an iterator ends with its file, so a new one is taken where it ended. */
  private void sendMessages(ConsumeQueueInterface queue) {
    long next = queue.getMinOffsetInQueue();
    while (next < queue.getMaxOffsetInQueue()) {
      ReferredIterator<CqUnit> units;
      try {
        units = queue.iterateFrom(next);
      } catch (RuntimeException error) { // a batch queue of which recovery left no file
        answers.line("queueFailed").put("topic", queue.getTopic()).put("error", error.toString()).send();
        return;
      }
      if (units == null) {
        return;
      }
      long first = next;
      try {
        while (units.hasNext()) {
          CqUnit unit = units.next();
          next = unit.getQueueOffset() + Math.max(1, unit.getBatchNum());
          sendMessage(queue, unit);
        }
      } finally {
        units.release();
      }
      if (next == first) {
        return;
      }
    }
  }

  private void sendMessage(ConsumeQueueInterface queue, CqUnit unit) {
    Answers.Line line =
        answers
            .line("msg")
            .put("cqTopic", queue.getTopic())
            .put("cqQueueId", queue.getQueueId())
            .put("cqOffset", unit.getQueueOffset())
            .put("cqPos", unit.getPos())
            .put("cqSize", unit.getSize())
            .put("tagsCode", unit.getTagsCode());
    if (unit.getBatchNum() != 1) {
      line.put("batchNum", unit.getBatchNum());
    }
    MessageExt message = null;
    try {
      message = messageAt(unit.getPos(), unit.getSize());
    } catch (RuntimeException | OutOfMemoryError error) { // a damaged length may be one of 2 GiB
      line.put("decodeError", error.toString());
    }
    if (message == null || message.getTopic() == null) {
      line.put("decode", null);
    } else {
      putMessage(line, message);
    }
    line.send();
  }

  private void putMessage(Answers.Line line, MessageExt message) {
    line.putAll(MessageFields.of(message));
    Map<String, Integer> keyFound = new KeyLookup(store).lookUp(message);
    if (!keyFound.isEmpty()) {
      line.put("keyFound", keyFound);
    }
  }

  private MessageExt messageAt(long phyOffset, int sizeBytes) {
    SelectMappedBufferResult record = store.selectOneMessageByOffset(phyOffset, sizeBytes);
    if (record == null) {
      return null;
    }
    try {
      ByteBuffer buffer = record.getByteBuffer();
      return MessageDecoder.decode(buffer, true, false);
    } finally {
      record.release();
    }
  }
}
