import HTTPAPI
import HTTPServer
import HTTPTypes
import Listening
import Rooms
import ServerConfiguration
import Streaming
import Support

enum OperationRoutes {
    static let drainTimeout = Input(
        "timeout", .seconds(0...3_600_000), "Seconds that running pushes may go on at most. Not set: the setting drain.timeout.")
    static let drainURL = Input(
        "tcUrl", .text(length: 1...1_024).example("rtmp://live.example.com/live"),
        "Where clients of Enhanced RTMP are asked to connect again. Not set: the setting drain.reconnectTo.")
    static let drainRestart = Input(
        "restart", .flag,
        """
        Whether the server starts again, with the program and the settings that are there then: the way to a new version. Once the pushes have \
        ended, new connections wait instead of being refused.
        """)

    static let drainInputs: [any RequestInput] = [Self.drainTimeout, Self.drainURL, Self.drainRestart]

    /// Calls about the server's run.
    static let all: [ControlRoute] = [
        ControlRoute(
            .get, "/server", "getServer", .server, .ops, .server,
            "Look up how the server itself does: ready, draining, settings that wait.",
            answers: ServerStatus.outputType
        ) { call in try await ServerStatus(call.services) },
        ControlRoute(
            .post, "/server/reload", "reloadSettings", .server, .admin, .server,
            "Read the settings and the certificate again. Applies what can be applied while running; a wrong file changes nothing.",
            answers: ReloadReport.outputType, failures: [.conflict]
        ) { call in
            switch await (try call.services.runs()).reload(by: call.actor.name) {
            case .success(let report):
                call.audit { $0.settings(report.change.applied) }
                return report
            case .failure(let refusal): throw APIError(refusal)
            }
        },
        ControlRoute(
            .post, "/server/drain", "drainServer", .server, .admin, .server,
            """
            End the server when its pushes have ended. Nobody new is let in from now on, clients of Enhanced RTMP are asked to connect again, \
            and when the time has passed the rest is ended, too.
            """,
            body: Self.drainInputs, answers: DrainState.outputType, status: .accepted, failures: [.conflict]
        ) { call in
            try await call.drain(try call.drainRequest())
        },
    ]
}

extension APICall {
    func drainRequest() throws(APIError) -> DrainRequest {
        DrainRequest(
            timeoutMs: self[OperationRoutes.drainTimeout], reconnectTo: try self.reconnectURL(OperationRoutes.drainURL),
            restarts: self[OperationRoutes.drainRestart] ?? false)
    }

    /// Begins this server's drain.
    func drain(_ request: DrainRequest) async throws(APIError) -> DrainState {
        let runs = try self.services.runs()
        self.audit { $0.drain(request) }
        switch await runs.drain(request, by: self.actor.name) {
        case .begun(let state): return state
        case .cannotRestart(let problems):
            throw APIError(
                "The server could not start again, so it goes on", problems, rule: "expected a program and settings that can start")
        case .alreadyUnderWay(let state):
            throw APIError.wrongState(
                "The server is draining already; \(state.words). Nothing was begun twice.", state: "draining", allowed: ["running"])
        }
    }

    /// The address to which clients are asked to reconnect: RTMP or RTMPS, as in the setting drain.reconnectTo. Nil if not given. Throws 400.
    func reconnectURL(_ input: Input<String>) throws(APIError) -> String? {
        guard let url = self[input] else { return nil }
        let parts = url.split(separator: "/", maxSplits: 2, omittingEmptySubsequences: false)
        guard parts.count == 3, ["rtmp:", "rtmps:"].contains(parts[0].lowercased()), parts[1].isEmpty, let first = parts[2].first,
            first != "/",
            url.unicodeScalars.allSatisfy({ $0.value > 0x20 && $0.value < 0x7F })
        else { throw APIError(FieldError(input.name, url, "expected an address such as rtmp://live.example.com/live")) }
        return url
    }
}

extension DrainState {
    /// "2 pushes, 5 viewers, 588 s left"
    var words: String {
        "\(self.pushes) \(self.pushes == 1 ? "push" : "pushes"), \(self.viewers) \(self.viewers == 1 ? "viewer" : "viewers"),"
            + " \((self.leftMs + 999) / 1_000) s left at most"
    }

    static let outputType = OutputType<DrainState>.object(
        "Drain",
        [
            .field("secondsLeft", .seconds, "Seconds until the rest is ended, at most.", \.leftMs),
            .field("pushes", .count, "Pushes that still run.", \.pushes),
            .field("viewers", .count, "Their viewers.", \.viewers),
            .field("asked", .count, "Clients that were asked to connect again.", \.asked),
            .field("restarts", .flag, "Whether the server starts again afterwards.", \.restarts),
        ])
}

extension ConfigChange.Setting {
    static let outputType = OutputType<ConfigChange.Setting>.object(
        "ChangedSetting",
        [
            .field("setting", .text, "Its path, such as limits.connections.", \.path),
            .field("from", .nullable(.text), "The former value; null when not set, and for secrets and URLs that may hold one.", \.from),
            .field("to", .nullable(.text), "The new value; null when not set, and for secrets and URLs that may hold one.", \.to),
        ])
}

extension ReloadReport {
    static let outputType = OutputType<ReloadReport>.object(
        "Reload",
        [
            .field("applied", .list(ConfigChange.Setting.outputType), "Changed settings that are in force now.", \.change.applied),
            .field(
                "needRestart", .list(ConfigChange.Setting.outputType),
                "Changed settings whose former values stay in force until a restart.", \.change.waiting),
            .field("certificate", .flag, "Whether the certificate was read again; false: there is none.", \.hasCertificate),
            .field("warnings", .list(.text), "What is allowed and probably not meant.", \.warnings),
        ])
}

extension APIError {
    fileprivate init(_ refusal: ReloadRefusal) {
        switch refusal {
        case .busy:
            self.init(.conflict, .conflict, "Another reload is under way; try again when it has ended.")
        case .mistakes(let all):
            self.init(
                "The settings were not reloaded, the running ones stay", all, rule: "expected settings that earshot config check accepts")
        }
    }

    /// 409 with the first of these problems.
    fileprivate init(_ what: String, _ problems: [String], rule: String) {
        self.init(
            .conflict, .conflict,
            "\(what): \(problems.prefix(8).joined(separator: "; "))" + (problems.count > 8 ? "; and \(problems.count - 8) more" : ""))
        self.rule = rule
    }
}

extension APIServices {
    /// Throws 503 in a process that has the server's parts but does not run it.
    func runs() throws(APIError) -> any ServerOperations {
        guard let operations = self.operations else { throw .unavailable("This server cannot be reloaded or drained by calls.") }
        return operations
    }
}

/// The state of the server itself.
struct ServerStatus: Sendable {
    let problem: String?
    let drain: DrainState?
    let pushes: Int
    let viewers: Int
    let reloadedAtMs: Int64?
    let reloadProblem: String?
    let waiting: [ConfigChange.Setting]

    init(_ services: APIServices) async throws(APIError) {
        let runs = try services.runs()
        self.problem = await runs.problem()
        self.drain = runs.drainState
        self.pushes = services.connections.admission.current.publishers
        self.viewers = services.streams.viewers
        self.reloadedAtMs = runs.reloadedAtMs
        self.reloadProblem = runs.reloadProblem
        self.waiting = runs.waitingSettings
    }

    static let outputType = OutputType<ServerStatus>.object(
        "Server",
        [
            .field("version", .text, "Its version.") { _ in ServerVersion.text },
            .field("ready", .flag, "Whether new pushes and plays may begin.") { $0.problem == nil },
            .field("problem", .nullable(.text), "Why not; null when they may.", \.problem),
            .field("drain", .nullable(DrainState.outputType), "The drain under way; null without.", \.drain),
            .field("publishers", .count, "Publishers now.", \.pushes),
            .field("viewers", .count, "Viewers now.", \.viewers),
            .field("reloadedAt", .nullable(.instant), "When the settings were last reloaded; null: not since the start.", \.reloadedAtMs),
            .field(
                "reloadProblem", .nullable(.text),
                "Why the last reload changed nothing, such as a key that does not fit its certificate; null when it succeeded, and before the first.",
                \.reloadProblem),
            .field(
                "needRestart", .list(ConfigChange.Setting.outputType),
                "Settings that had changed at the last reload, and whose former values stay in force until a restart.", \.waiting),
        ])
}
