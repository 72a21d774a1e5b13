package seglog.judge;

import java.io.BufferedReader;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Base64;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.rocketmq.common.compression.Compressor;
import org.apache.rocketmq.common.compression.CompressionType;
import org.apache.rocketmq.common.compression.CompressorFactory;
import org.apache.rocketmq.common.message.MessageDecoder;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.common.sysflag.MessageSysFlag;

/**
 * Asks RocketMQ's own client code for bodies: a line of a file with a type is compressed by that
 * type, one with records is decoded as {@code PullAPIWrapper.processPullResult} does.
 */
public final class ClientBodies {
  private ClientBodies() {}

  /** One line of the question; bytes are in base64. */
  private static final class Question {
    String type;
    int level;
    String body;
    String records;
  }

  /** Runs on the file that is the only argument. */
  public static void main(String[] args) throws Exception {
    StringBuilder out = new StringBuilder();
    try (BufferedReader questions = Files.newBufferedReader(Path.of(args[0]))) {
      for (String line = questions.readLine(); line != null; line = questions.readLine()) {
        Question question = Json.parse(line, Question.class);
        Object answer = question.records == null ? compressed(question) : pulled(question);
        out.append(Json.print(answer)).append('\n');
      }
    }
    System.out.write(out.toString().getBytes(StandardCharsets.UTF_8));
    System.out.flush();
  }

  private static String compressed(Question question) throws IOException {
    Compressor compressor = CompressorFactory.getCompressor(CompressionType.of(question.type));
    byte[] body = Base64.getDecoder().decode(question.body);
    return Base64.getEncoder().encodeToString(compressor.compress(body, question.level));
  }

  private static List<Map<String, Object>> pulled(Question question) throws Exception {
    ByteBuffer records = ByteBuffer.wrap(Base64.getDecoder().decode(question.records));
    List<MessageExt> messages = new ArrayList<>();
    for (MessageExt message : MessageDecoder.decodesBatch(records, true, true, true)) {
      if (MessageSysFlag.check(message.getSysFlag(), MessageSysFlag.INNER_BATCH_FLAG)
          && MessageSysFlag.check(message.getSysFlag(), MessageSysFlag.NEED_UNWRAP_FLAG)) {
        MessageDecoder.decodeMessage(message, messages);
      } else {
        messages.add(message);
      }
    }
    List<Map<String, Object>> answer = new ArrayList<>();
    for (MessageExt message : messages) {
      answer.add(fields(message));
    }
    return answer;
  }

  private static Map<String, Object> fields(MessageExt message) {
    Map<String, Object> fields = new LinkedHashMap<>();
    fields.put("topic", message.getTopic());
    fields.put("queueId", message.getQueueId());
    fields.put("queueOffset", message.getQueueOffset());
    fields.put("commitLogOffset", message.getCommitLogOffset());
    fields.put("flag", message.getFlag());
    fields.put("bornTimestamp", message.getBornTimestamp());
    fields.put("storeTimestamp", message.getStoreTimestamp());
    fields.put("bornHost", message.getBornHostString());
    fields.put("storeHost", message.getStoreHost().toString());
    fields.put("reconsumeTimes", message.getReconsumeTimes());
    fields.put("tags", message.getTags());
    fields.put("keys", message.getKeys());
    fields.put("properties", message.getProperties());
    byte[] body = message.getBody() == null ? new byte[0] : message.getBody();
    fields.put("body", Base64.getEncoder().encodeToString(body));
    return fields;
  }
}
