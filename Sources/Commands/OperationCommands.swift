import ArgumentParser
import CommandSupport
import LibC
import Support

/// `earshot reload`: the running server reads its settings and certificate again.
struct ReloadCommand: ServerCommand {
    static let configuration = CommandConfiguration(
        commandName: "reload",
        abstract: "Have a running server read its settings and certificate again; the same as SIGHUP.",
        discussion: """
            Says what changed and is in force, and what needs a restart. A file with mistakes changes nothing: `earshot config check` shows \
            them, too. `earshot config reference` says of each setting when it applies.

            \(ExitStatus.explanation)
            """)
    @OptionGroup var options: ServerOptions

    func run(_ api: APIClient) async throws {
        let report = try await api.post(["server", "reload"])
        if self.options.json { return try Console.print(report.indented()) }
        for warning in report["warnings"].list { Console.complain("warning: \(DisplayText.escaped(warning.string ?? ""))") }
        if self.options.quiet { return }
        let (applied, waiting) = (report["applied"].list, report["needRestart"].list)
        if applied.isEmpty { try Console.print("reloaded: no setting that can be applied has changed") }
        for change in applied { try Console.print("applied        \(Self.line(change))") }
        for change in waiting { try Console.print("needs restart  \(Self.line(change))") }
        if report["certificate"].bool == true { try Console.print("the certificate was read again; new connections get it") }
    }

    private static func line(_ change: JSONValue?) -> String {
        let (from, to) = (change["from"].string, change["to"].string)
        let values = from == nil && to == nil ? "" : "  \(self.shown(from)) → \(self.shown(to))"
        return DisplayText.escaped((change["setting"].string ?? "-") + values)
    }

    private static func shown(_ value: String?) -> String { value.map { $0.isEmpty ? "empty" : $0 } ?? "not set" }
}

/// `earshot drain`: the running server ends when its pushes have ended.
struct DrainCommand: ServerCommand {
    static let configuration = CommandConfiguration(
        commandName: "drain",
        abstract: "Have a running server end, as SIGTERM does: when its pushes have ended, or the time that they are given is over.",
        discussion: """
            From now on nobody new is let in, and /readyz says so. Clients of Enhanced RTMP are asked to connect again; the others may finish, \
            until the time is over. Then the server ends with status 0. Docker and Kubernetes start it again, as they are told to; the systemd \
            unit does not.

            With --restart it starts again by itself, in the same process: as the program that its path leads to by then, such as a newer \
            version, and with the settings as they are then. Its ports stay open: once the pushes have ended, new \
            connections wait instead of being refused.

            EXAMPLES
              earshot drain --within 10m
              earshot drain --restart --wait
              earshot drain --within 1h --reconnect-to rtmp://other.example.com/live --wait

            \(ExitStatus.explanation)
            """)
    @OptionGroup var drain: DrainOptions
    @OptionGroup var options: ServerOptions

    func run(_ api: APIClient) async throws {
        try self.options.report(try await api.post(["server", "drain"], self.drain.body)) { DrainOptions.begun($0, "the server") }
        if self.drain.wait { try await self.drain.follow(api, self.options) }
    }
}

/// How a server is to end: the options of `earshot drain` and `earshot nodes drain`.
struct DrainOptions: ParsableArguments {
    @Option(help: ArgumentHelp("How long running pushes may go on. (default: the server's setting drain.timeout)", valueName: "TIME"))
    var within: Span?
    @Option(
        help: ArgumentHelp(
            "Where clients of Enhanced RTMP are asked to connect. (default: the setting drain.reconnectTo, or where they did before)",
            valueName: "URL"))
    var reconnectTo: String?
    @Flag(help: "Start the server again when it has ended, with its ports kept open.") var restart = false
    @Flag(help: "Return when the server has ended, or started again; says every ten seconds how long is left.") var wait = false

    var body: [String: JSONValue] {
        var body: [String: JSONValue] = [:]
        if let within { body["timeout"] = .number(Double(within.milliseconds) / 1_000) }
        if let reconnectTo { body["tcUrl"] = .string(reconnectTo) }
        if self.restart { body["restart"] = .bool(true) }
        return body
    }

    static func begun(_ state: JSONValue?, _ server: String) -> String {
        guard state["pushes"].integer ?? 0 > 0, state["secondsLeft"].number ?? 0 > 0 else {
            return state["restarts"].bool == true ? "\(server) is starting again now" : "\(server) is ending now"
        }
        return "draining: nobody new is let in; \(Self.left(state)); \(state["asked"].integer ?? 0) asked to connect again"
    }

    private static func left(_ state: JSONValue?) -> String {
        let pushes = state["pushes"].integer ?? 0
        return
            "\(pushes) \(pushes == 1 ? "push" : "pushes") may go on for \(TimeText.duration(seconds: state["secondsLeft"]) ?? "0s") at most"
    }

    /// Waits until no server answers, or one that is not draining: a supervisor has then started another.
    func follow(_ api: APIClient, _ options: ServerOptions) async throws {
        var (seconds, silent) = (0, 0)
        while true {
            try await Task.sleep(for: .seconds(1))
            seconds += 1
            let status: JSONValue
            do {
                status = try await api.get(["server"])
                silent = 0
            } catch let failure as CommandFailure where failure.status == .unreachable {
                // A port that is kept open refuses nobody.
                let isClosed = failure.message.contains(Console.explain(ECONNREFUSED))
                guard !self.restart || isClosed else { continue }
                silent += 1
                // A single failure may be the network's.
                guard silent > 1 else { continue }
                if self.restart { throw CommandFailure(.unreachable, "the server has ended and has not started again; its log says why") }
                if !options.quiet { Console.complain("the server has ended") }
                return
            }
            guard !status["drain"].isNull else {
                if !options.quiet { Console.complain("the server has ended, and was started again") }
                return
            }
            if seconds % 10 == 0, !options.quiet { Console.complain(Self.left(status["drain"])) }
        }
    }
}
