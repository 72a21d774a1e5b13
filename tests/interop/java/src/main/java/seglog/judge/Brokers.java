package seglog.judge;

/**
 * The one broker that this process may run: {@code brokerStart} starts it, {@code brokerAsk} asks it
 * through a connection, {@code nameServerRestart} has its name server start again, {@code memberStart, memberLook, memberStop, admin} have clients of RocketMQ use
 * it, {@code brokerStop} shuts it down and {@code brokerHalt} ends the process as a
 * crash would.
 */
final class Brokers {
  private static RealBroker running;

  private Brokers() {}

  /** Returns false when the process should not be used any more. */
  static boolean run(Request request, Answers answers) throws Exception {
    switch (request.op) {
      case "brokerStart" -> start(request, answers);
      case "brokerAsk" -> theBroker().ask(request, answers);
      case "nameServerRestart" -> theBroker().restartNameServer(request.timeoutMs);
      case "memberStart" -> theBroker().members.start(request, answers);
      case "memberLook" -> theBroker().members.look(request, answers);
      case "memberStop" -> theBroker().members.stop(request);
      case "admin" -> theBroker().members.admin(request, answers);
      case "brokerStop" -> stop();
      default -> halt(answers);
    }
    return true;
  }

  private static void start(Request request, Answers answers) throws Exception {
    if (running != null) {
      throw new IllegalStateException("a broker runs already");
    }
    running = RealBroker.start(request);
    answers
        .line("broker")
        .put("port", running.port())
        .put("nameServerPort", running.nameServerPort())
        .send();
  }

  private static void stop() throws Exception {
    RealBroker broker = theBroker();
    running = null;
    broker.close();
  }

  private static void halt(Answers answers) {
    answers.line("end").put("sound", false).send();
    Runtime.getRuntime().halt(0);
  }

  private static RealBroker theBroker() {
    if (running == null) {
      throw new IllegalStateException("no broker runs");
    }
    return running;
  }
}
