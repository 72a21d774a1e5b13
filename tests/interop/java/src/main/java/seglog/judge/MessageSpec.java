package seglog.judge;

import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.UnknownHostException;
import java.nio.charset.StandardCharsets;
import java.util.LinkedHashMap;
import java.util.Map;
import org.apache.rocketmq.common.compression.CompressionType;
import org.apache.rocketmq.common.compression.CompressorFactory;
import org.apache.rocketmq.common.message.MessageAccessor;
import org.apache.rocketmq.common.message.MessageConst;
import org.apache.rocketmq.common.message.MessageExtBrokerInner;
import org.apache.rocketmq.common.sysflag.MessageSysFlag;

/**
 * Messages to append to one queue. All follows from the spec and the number of the message, so that
 * a test can tell what must come back.
 */
final class MessageSpec {
  private static final CompressionType COMPRESSION = CompressionType.ZLIB;
  private static final int COMPRESSION_LEVEL = 5; // as the client's default

  String topic;
  int queueId;

  /** Messages to append, numbered from {@link #first}. */
  int count = 1;

  /** Number of the first message. */
  int first;

  /** One outer batch instead of single messages. */
  boolean batch;

  /** One inner batch, for a topic with batch queues, instead of single messages. */
  boolean innerBatch;

  int bodyBytes = 32;

  /** Whether single bodies are stored compressed with zlib, as clients do it. */
  boolean compressed;

  String tags;

  /** Each message gets this text with its number behind it as its key. */
  String keys;

  Map<String, String> properties = Map.of();
  int flag;
  int sysFlag;
  long bornTimestamp = 1_700_000_000_000L;
  Host bornHost = new Host();
  Host storeHost = new Host();
  int reconsumeTimes;
  long preparedTransactionOffset;

  /** Body of message {@code number}: {@code <topic>/<queueId>/<number> } over and over, cut. */
  byte[] body(int number) {
    byte[] pattern =
        (topic + "/" + queueId + "/" + number + " ").getBytes(StandardCharsets.UTF_8);
    byte[] body = new byte[bodyBytes];
    for (int at = 0; at < body.length; at++) {
      body[at] = pattern[at % pattern.length];
    }
    return body;
  }

  /** The body as a client sends it: compressed, with the flags of {@link #fill} that say so. */
  byte[] sentBody(int number) throws IOException {
    return compressed
        ? CompressorFactory.getCompressor(COMPRESSION).compress(body(number), COMPRESSION_LEVEL)
        : body(number);
  }

  private int allFlags() {
    int flags = MessageSysFlag.COMPRESSED_FLAG | COMPRESSION.getCompressionFlag();
    return compressed ? sysFlag | flags : sysFlag;
  }

  Map<String, String> properties(int number) {
    Map<String, String> all = new LinkedHashMap<>(properties);
    if (tags != null) {
      all.put(MessageConst.PROPERTY_TAGS, tags);
    }
    if (keys != null) {
      all.put(MessageConst.PROPERTY_KEYS, keys + number);
    }
    return all;
  }

  /** Copies what single messages and batches have in common. */
  void fill(MessageExtBrokerInner message) throws UnknownHostException {
    message.setTopic(topic);
    message.setQueueId(queueId);
    message.setFlag(flag);
    message.setSysFlag(allFlags());
    message.setBornTimestamp(bornTimestamp);
    message.setBornHost(bornHost.address());
    message.setStoreHost(storeHost.address());
    message.setReconsumeTimes(reconsumeTimes);
    message.setPreparedTransactionOffset(preparedTransactionOffset);
    MessageAccessor.setProperties(message, new LinkedHashMap<>());
    if (bornHost.isV6()) {
      message.setBornHostV6Flag();
    }
    if (storeHost.isV6()) {
      message.setStoreHostAddressV6Flag();
    }
  }

  /** An address and a port. */
  static final class Host {
    String address = "127.0.0.1";
    int port = 10911;

    InetSocketAddress address() throws UnknownHostException {
      return new InetSocketAddress(InetAddress.getByName(address), port);
    }

    boolean isV6() {
      return address.contains(":");
    }
  }
}
