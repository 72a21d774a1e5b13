package seglog.judge;

import java.io.BufferedReader;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.apache.rocketmq.filter.SqlFilter;
import org.apache.rocketmq.filter.expression.EvaluationContext;
import org.apache.rocketmq.filter.expression.Expression;
import org.apache.rocketmq.filter.expression.MQFilterException;

/**
 * Asks RocketMQ's own SQL92 filter: each line of a file is an expression with the properties of
 * some messages, each line of the output what it is for them, or that it is no expression.
 */
public final class Conditions {
  private Conditions() {}

  /** One line of the question. */
  private static final class Question {
    String expression;
    List<Map<String, String>> messages;
  }

  private record Properties(Map<String, String> of) implements EvaluationContext {
    @Override
    public Object get(String name) {
      return of.get(name);
    }

    @Override
    public Map<String, Object> keyValues() {
      return Map.copyOf(of);
    }
  }

  /** Runs on the file that is the only argument. */
  public static void main(String[] args) throws IOException {
    StringBuilder out = new StringBuilder();
    try (BufferedReader questions = Files.newBufferedReader(Path.of(args[0]))) {
      for (String line = questions.readLine(); line != null; line = questions.readLine()) {
        out.append(Json.print(answer(Json.parse(line, Question.class)))).append('\n');
      }
    }
    System.out.write(out.toString().getBytes(StandardCharsets.UTF_8));
    System.out.flush();
  }

  /** Returns true, false, null or "error" for each message, or null for what is no expression. */
  private static List<Object> answer(Question question) {
    Expression expression;
    try {
      expression = new SqlFilter().compile(question.expression);
    } catch (MQFilterException refusal) {
      return null;
    }
    List<Object> answers = new ArrayList<>();
    for (Map<String, String> message : question.messages) {
      answers.add(ask(expression, new Properties(message)));
    }
    return answers;
  }

  @SuppressWarnings("PMD.AvoidCatchingGenericException")
  private static Object ask(Expression expression, EvaluationContext message) {
    try {
      return expression.evaluate(message);
    } catch (Exception failure) {
      return "error";
    }
  }
}
