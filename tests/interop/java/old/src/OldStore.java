package seglog.old;

import com.google.gson.Gson;
import java.io.InputStreamReader;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import org.apache.rocketmq.common.BrokerConfig;
import org.apache.rocketmq.common.MixAll;
import org.apache.rocketmq.common.TopicFilterType;
import org.apache.rocketmq.common.message.MessageAccessor;
import org.apache.rocketmq.common.message.MessageConst;
import org.apache.rocketmq.common.message.MessageDecoder;
import org.apache.rocketmq.store.DefaultMessageStore;
import org.apache.rocketmq.store.MessageExtBrokerInner;
import org.apache.rocketmq.store.config.MessageStoreConfig;
import org.apache.rocketmq.store.stats.BrokerStatsManager;

/**
 * The store of the last release before 5: it carries out one request of the judge's form to append
 * messages, which it reads from standard input.
 */
public final class OldStore {
  private OldStore() {}

  /** The fields of the judge's request that count here. */
  static final class Request {
    String dir;
    int segmentBytes;
    int queueBytes;
    Map<String, String> config = Map.of();
    List<Spec> messages = List.of();
    boolean halt;

    /** How long the store stays open after the last message. */
    long seconds;
  }

  /** Messages to append to one queue, as the judge's specs have them. */
  static final class Spec {
    String topic;
    int queueId;
    int count = 1;
    int first;
    int bodyBytes = 32;
    String tags;
    String keys;
    Map<String, String> properties = Map.of();
    int sysFlag;

    MessageExtBrokerInner message(int number) {
      MessageExtBrokerInner message = new MessageExtBrokerInner();
      message.setTopic(topic);
      message.setQueueId(queueId);
      message.setSysFlag(sysFlag);
      message.setBody(body(number));
      message.setBornTimestamp(1_700_000_000_000L);
      message.setBornHost(new InetSocketAddress("127.0.0.1", 10911));
      message.setStoreHost(new InetSocketAddress("127.0.0.1", 10911));
      Map<String, String> all = new HashMap<>(properties);
      if (tags != null) {
        all.put(MessageConst.PROPERTY_TAGS, tags);
      }
      if (keys != null) {
        all.put(MessageConst.PROPERTY_KEYS, keys + number);
      }
      MessageAccessor.setProperties(message, all);
      message.setPropertiesString(MessageDecoder.messageProperties2String(all));
      message.setTagsCode(
          MessageExtBrokerInner.tagsString2tagsCode(TopicFilterType.SINGLE_TAG, tags));
      return message;
    }

    private byte[] body(int number) {
      String pattern = topic + "/" + queueId + "/" + number + " ";
      byte[] repeated =
          pattern.repeat(bodyBytes / pattern.length() + 1).getBytes(StandardCharsets.UTF_8);
      return Arrays.copyOf(repeated, bodyBytes);
    }
  }

  /** Carries out the request, and ends: threads of a store that failed would go on. */
  public static void main(String[] args) {
    try {
      run(new Gson().fromJson(new InputStreamReader(System.in, StandardCharsets.UTF_8), Request.class));
      Runtime.getRuntime().halt(0);
    } catch (Throwable error) {
      error.printStackTrace();
      Runtime.getRuntime().halt(1);
    }
  }

  /** Opens the store, appends, and shuts it down or leaves it as a crash would. */
  private static void run(Request request) throws Exception {
    DefaultMessageStore store =
        new DefaultMessageStore(
            configure(request),
            new BrokerStatsManager("judge", true),
            (topic, queueId, offset, tagsCode, storeTime, bitMap, properties) -> {},
            new BrokerConfig());
    if (!store.load()) {
      throw new IllegalStateException("load() returned false");
    }
    store.start();
    for (Spec spec : request.messages) {
      for (int number = spec.first; number < spec.first + spec.count; number++) {
        if (!store.putMessage(spec.message(number)).isOk()) {
          throw new IllegalStateException(spec.topic + " " + number);
        }
      }
    }
    if (!request.halt) {
      while (store.dispatchBehindBytes() != 0) {
        Thread.sleep(1);
      }
      Thread.sleep(request.seconds * 1000);
      store.shutdown();
    }
  }

  private static MessageStoreConfig configure(Request request) {
    MessageStoreConfig config = new MessageStoreConfig();
    config.setStorePathRootDir(request.dir);
    config.setStorePathCommitLog(request.dir + "/commitlog");
    config.setMappedFileSizeCommitLog(request.segmentBytes);
    config.setMappedFileSizeConsumeQueue(request.queueBytes);
    config.setHaListenPort(0);
    config.setFileReservedTime(240_000);
    config.setDiskMaxUsedSpaceRatio(95);
    config.setOsPageCacheBusyTimeOutMills(60_000);
    Properties further = new Properties();
    further.putAll(request.config);
    MixAll.properties2Object(further, config);
    return config;
  }
}
