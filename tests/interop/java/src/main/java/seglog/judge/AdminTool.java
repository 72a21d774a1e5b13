package seglog.judge;

import java.io.ByteArrayOutputStream;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import org.apache.rocketmq.tools.command.MQAdminStartup;
import seglog.clients.ClientEnds;

/** {@code mqadmin}: RocketMQ's own tool, run in this process. */
final class AdminTool extends MQAdminStartup {
  private AdminTool() {}

  /** Runs a command at a cluster, and puts what it prints and what it complains of. */
  static void run(List<String> command, String nameServers, Answers answers) {
    // Some keep what they have connected to; in a process of its own each begins anew.
    SUB_COMMANDS.clear();
    List<String> arguments = new ArrayList<>(command);
    arguments.add("-n");
    arguments.add(nameServers);
    ByteArrayOutputStream printed = new ByteArrayOutputStream();
    ByteArrayOutputStream complained = new ByteArrayOutputStream();
    PrintStream out = System.out;
    PrintStream err = System.err;
    System.setOut(new PrintStream(printed, true, StandardCharsets.UTF_8));
    System.setErr(new PrintStream(complained, true, StandardCharsets.UTF_8));
    try (ClientEnds ends = ClientEnds.begin()) {
      main0(arguments.toArray(String[]::new), null);
    } finally {
      System.setOut(out);
      System.setErr(err);
    }
    answers
        .line("admin")
        .put("printed", printed.toString(StandardCharsets.UTF_8))
        .put("complained", complained.toString(StandardCharsets.UTF_8))
        .send();
  }
}
