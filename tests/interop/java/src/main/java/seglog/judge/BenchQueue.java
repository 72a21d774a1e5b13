package seglog.judge;

import java.net.InetSocketAddress;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Random;
import java.util.concurrent.Semaphore;
import java.util.concurrent.atomic.AtomicReference;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageAccessor;
import org.apache.rocketmq.common.message.MessageConst;
import org.apache.rocketmq.common.message.MessageDecoder;
import org.apache.rocketmq.common.message.MessageExtBatch;
import org.apache.rocketmq.common.message.MessageExtBrokerInner;
import org.apache.rocketmq.store.DefaultMessageStore;
import org.apache.rocketmq.store.PutMessageResult;

/**
 * The queues that benches write, one message or one batch a call; messages go to the queues in turn.
 * What is in them is the same as in {@code perf/plan/bodies.py}. One thread at a time.
 */
final class BenchQueue {
  static final String TOPIC = "Bench";
  private static final InetSocketAddress HOST = new InetSocketAddress("127.0.0.1", 10911);
  private static final int KEY_COUNT = 1 << 16;
  private static final int WRITES_BETWEEN_LOOKS = 32;
  private static final int MIN_RAGGED_BYTES = 64;
  private static final int MAX_RAGGED_BYTES = 2048;
  private static final int RAGGED_STEP = 7919;

  private final DefaultMessageStore store;
  private final Request request;
  private final byte[] body;
  private final byte[] encodedBatch;
  private final String[] keys;
  private final String[] uniqueKeys;
  private long written;

  BenchQueue(DefaultMessageStore store, Request request) throws Exception {
    this.store = store;
    this.request = request;
    body = body(request.bodyBytes);
    keys = new String[request.usual ? KEY_COUNT : 0];
    uniqueKeys = new String[keys.length];
    for (int number = 0; number < keys.length; number++) {
      keys[number] = String.format("order-%08d", number);
      uniqueKeys[number] = String.format("7F0000010ABC18B4AAC2%012X", number);
    }
    List<Message> batch = new ArrayList<>();
    for (int number = 0; number < request.batchSize; number++) {
      batch.add(new Message(TOPIC, request.ragged ? body(raggedBytes(number)) : body));
    }
    encodedBatch = MessageDecoder.encodeMessages(batch);
  }

  private static byte[] body(int sizeBytes) {
    byte[] made = new byte[sizeBytes];
    new Random(1).nextBytes(made);
    return made;
  }

  private static int raggedBytes(int number) {
    return MIN_RAGGED_BYTES + number * RAGGED_STEP % (MAX_RAGGED_BYTES - MIN_RAGGED_BYTES + 1);
  }

  /** Messages appended so far. */
  long written() {
    return written;
  }

  /** Appends until the time is over or as much is written as was asked for. */
  Latencies writeFor(double seconds, Request limits) {
    Latencies latencies = new Latencies();
    long before = written;
    long deadline = System.nanoTime() + (long) (seconds * 1e9);
    int turns = request.batchSize == 1 && !isDurable() ? WRITES_BETWEEN_LOOKS : 1;
    while (System.nanoTime() < deadline && !isEnough(written - before, limits)) {
      for (int turn = 0; turn < turns; turn++) {
        if (limits.timed) {
          long begun = System.nanoTime();
          append();
          latencies.add(System.nanoTime() - begun);
        } else {
          append();
        }
      }
    }
    return latencies;
  }

  private boolean isDurable() {
    return request.workload.equals("sync");
  }

  private boolean isEnough(long messages, Request limits) {
    return messages * request.bodyBytes >= limits.maxBytes
        || (limits.messageCount > 0 && messages >= limits.messageCount);
  }

  void writeAtLeast(long messageCount) {
    while (written < messageCount) {
      append();
    }
  }

  /** Appends with so many acknowledgements outstanding, and waits for them all in the end. */
  void writeInFlightFor(double seconds, int inFlight) throws InterruptedException {
    Semaphore free = new Semaphore(inFlight);
    AtomicReference<Object> failure = new AtomicReference<>();
    long deadline = System.nanoTime() + (long) (seconds * 1e9);
    while (System.nanoTime() < deadline && failure.get() == null) {
      free.acquire();
      store
          .asyncPutMessage(message())
          .whenComplete(
              (result, error) -> {
                if (error != null || !result.isOk()) {
                  failure.set(error != null ? error : result.getPutMessageStatus());
                }
                free.release();
              });
      written++;
    }
    free.acquire(inFlight);
    if (failure.get() != null) {
      throw new IllegalStateException("append: " + failure.get());
    }
  }

  void append() {
    PutMessageResult result;
    if (request.batchSize == 1) {
      result = store.putMessage(message());
    } else {
      MessageExtBatch batch = (MessageExtBatch) fill(new MessageExtBatch());
      batch.setBody(encodedBatch);
      result = store.putMessages(batch);
    }
    if (!result.isOk()) {
      throw new IllegalStateException("append: " + result.getPutMessageStatus());
    }
    written += request.batchSize;
  }

  private MessageExtBrokerInner message() {
    MessageExtBrokerInner message = fill(new MessageExtBrokerInner());
    message.setBody(body);
    if (request.usual) {
      int number = (int) (written % KEY_COUNT);
      message.setTags("TagA");
      message.setKeys(keys[number]);
      MessageAccessor.putProperty(
          message, MessageConst.PROPERTY_UNIQ_CLIENT_MESSAGE_ID_KEYIDX, uniqueKeys[number]);
      message.setTagsCode(MessageExtBrokerInner.tagsString2tagsCode(null, "TagA"));
    }
    message.setPropertiesString(
        MessageDecoder.messageProperties2String(message.getProperties()));
    return message;
  }

  private MessageExtBrokerInner fill(MessageExtBrokerInner message) {
    message.setTopic(TOPIC);
    message.setQueueId((int) (written / request.batchSize % request.queues));
    message.setBornTimestamp(System.currentTimeMillis());
    message.setBornHost(HOST);
    message.setStoreHost(HOST);
    MessageAccessor.setProperties(message, new HashMap<>());
    return message;
  }
}
