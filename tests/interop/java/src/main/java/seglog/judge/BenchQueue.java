package seglog.judge;

import java.net.InetSocketAddress;
import java.util.Collections;
import java.util.HashMap;
import java.util.Random;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageAccessor;
import org.apache.rocketmq.common.message.MessageDecoder;
import org.apache.rocketmq.common.message.MessageExtBatch;
import org.apache.rocketmq.common.message.MessageExtBrokerInner;
import org.apache.rocketmq.store.DefaultMessageStore;
import org.apache.rocketmq.store.PutMessageResult;

/**
 * The queue that benches write: always the same body, one message or one batch a call. One thread at
 * a time.
 */
final class BenchQueue {
  static final String TOPIC = "Bench";
  private static final InetSocketAddress HOST = new InetSocketAddress("127.0.0.1", 10911);

  private final DefaultMessageStore store;
  private final byte[] body;
  private final int batchSize;
  private final boolean usual;
  private final byte[] encodedBatch;
  private long written;

  BenchQueue(DefaultMessageStore store, Request request, int batchSize) throws Exception {
    int bodyBytes = request.bodyBytes;
    this.store = store;
    this.batchSize = batchSize;
    usual = request.usual;
    body = new byte[bodyBytes];
    new Random(1).nextBytes(body);
    encodedBatch =
        MessageDecoder.encodeMessages(Collections.nCopies(batchSize, new Message(TOPIC, body)));
  }

  /** Messages appended so far. */
  long written() {
    return written;
  }

  void append() {
    PutMessageResult result;
    if (batchSize == 1) {
      MessageExtBrokerInner message = fill(new MessageExtBrokerInner());
      message.setBody(body);
      if (usual) {
        message.setTags("TagA");
        message.setKeys("k" + written);
        message.setTagsCode(MessageExtBrokerInner.tagsString2tagsCode(null, "TagA"));
      }
      message.setPropertiesString(
          MessageDecoder.messageProperties2String(message.getProperties()));
      result = store.putMessage(message);
    } else {
      MessageExtBatch batch = (MessageExtBatch) fill(new MessageExtBatch());
      batch.setBody(encodedBatch);
      result = store.putMessages(batch);
    }
    if (!result.isOk()) {
      throw new IllegalStateException("append: " + result.getPutMessageStatus());
    }
    written += batchSize;
  }

  private static MessageExtBrokerInner fill(MessageExtBrokerInner message) {
    message.setTopic(TOPIC);
    message.setQueueId(0);
    message.setBornTimestamp(System.currentTimeMillis());
    message.setBornHost(HOST);
    message.setStoreHost(HOST);
    MessageAccessor.setProperties(message, new HashMap<>());
    return message;
  }
}
