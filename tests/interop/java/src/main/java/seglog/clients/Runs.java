package seglog.clients;

import com.google.gson.Gson;
import com.google.gson.GsonBuilder;
import java.io.PrintStream;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;

/** Runs scenarios at a broker, some at a time, and prints a line of JSON for each. */
public final class Runs {
  private static final int AT_A_TIME = 6;
  private static final Gson GSON =
      new GsonBuilder().serializeNulls().disableHtmlEscaping().create();

  private Runs() {}

  /**
   * Runs those that any client can, and halts: {@code Runs NAME_SERVER BROKER [SCENARIO]...}; all
   * where none is named.
   */
  public static void main(String[] args) throws Exception {
    run(args, Scenarios.all());
  }

  /** Runs those of the scenarios that the arguments name, and halts. */
  public static void run(String[] args, Map<String, Scenario> scenarios) throws Exception {
    PrintStream out = System.out;
    System.setOut(System.err); // clients print there at times
    Cluster cluster = new Cluster(args[0], args[1]);
    List<String> wanted = List.of(args).subList(2, args.length);
    ExecutorService threads = Executors.newFixedThreadPool(AT_A_TIME);
    List<Future<Map<String, Object>>> runs = new ArrayList<>();
    print(out, run("no-conditions", Pushes::noConditions, cluster));
    cluster.allowConditions();
    for (Map.Entry<String, Scenario> each : scenarios.entrySet()) {
      if (wanted.isEmpty() || wanted.contains(each.getKey())) {
        runs.add(threads.submit(() -> run(each.getKey(), each.getValue(), cluster)));
      }
    }
    for (Future<Map<String, Object>> run : runs) {
      print(out, run.get());
    }
    Runtime.getRuntime().halt(0);
  }

  private static void print(PrintStream out, Map<String, Object> line) {
    byte[] bytes = (GSON.toJson(line) + "\n").getBytes(StandardCharsets.UTF_8);
    out.write(bytes, 0, bytes.length);
    out.flush();
  }

  private static Map<String, Object> run(String name, Scenario scenario, Cluster cluster) {
    Map<String, Object> line = new LinkedHashMap<>();
    line.put("scenario", name);
    try (Site site = new Site(name, cluster)) {
      line.put("outcome", scenario.run(site));
    } catch (Exception | LinkageError error) {
      StringWriter trace = new StringWriter();
      error.printStackTrace(new PrintWriter(trace));
      line.put("failure", trace.toString());
    }
    return line;
  }
}
