package seglog.judge;

import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.HexFormat;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.TreeMap;
import org.apache.rocketmq.common.message.MessageExt;

/** The fields of a decoded message as the {@code msg} lines name them. */
final class MessageFields {
  private MessageFields() {}

  static Map<String, Object> of(MessageExt message) {
    byte[] body = message.getBody() == null ? new byte[0] : message.getBody();
    // A record without properties decodes to no map at all.
    Map<String, String> properties =
        message.getProperties() == null ? Map.of() : message.getProperties();
    Map<String, Object> fields = new LinkedHashMap<>();
    fields.put("topic", message.getTopic());
    fields.put("queueId", message.getQueueId());
    fields.put("queueOffset", message.getQueueOffset());
    fields.put("commitLogOffset", message.getCommitLogOffset());
    fields.put("storeSize", message.getStoreSize());
    fields.put("bodyCRC", message.getBodyCRC());
    fields.put("sysFlag", message.getSysFlag());
    fields.put("flag", message.getFlag());
    fields.put("bornTimestamp", message.getBornTimestamp());
    fields.put("storeTimestamp", message.getStoreTimestamp());
    fields.put("bornHost", String.valueOf(message.getBornHost()));
    fields.put("storeHost", String.valueOf(message.getStoreHost()));
    fields.put("reconsumeTimes", message.getReconsumeTimes());
    fields.put("preparedTransactionOffset", message.getPreparedTransactionOffset());
    fields.put("bodyLen", body.length);
    fields.put("bodySha256", sha256(body));
    fields.put("properties", new TreeMap<>(properties));
    return fields;
  }

  private static String sha256(byte[] bytes) {
    try {
      return HexFormat.of().formatHex(MessageDigest.getInstance("SHA-256").digest(bytes));
    } catch (NoSuchAlgorithmException impossible) {
      throw new IllegalStateException(impossible);
    }
  }
}
