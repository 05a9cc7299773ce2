import Access
package import ControlAPI
import HTTPServer
import LibC
import Listening
package import Logging
import Packaging
import Playback
import Rooms
package import ServerConfiguration
package import Streaming
import Support
import Synchronization

/// How a process reads its settings and sets its log. A value; `read` blocks.
package struct Reloading: Sendable {
    /// Waits while the file is being written.
    let settle: @Sendable () async -> Void
    /// Throws an error whose description names all mistakes.
    let read: @Sendable () throws -> LoadedConfig
    /// Applies `log.level` to all loggers.
    let setLogLevel: @Sendable (Logger.Level) -> Void
    /// Writes out the lines that the log still holds. Blocks.
    let flushLog: @Sendable () -> Void

    package init(
        settle: @escaping @Sendable () async -> Void, read: @escaping @Sendable () throws -> LoadedConfig,
        setLogLevel: @escaping @Sendable (Logger.Level) -> Void, flushLog: @escaping @Sendable () -> Void
    ) {
        self.settle = settle
        self.read = read
        self.setLogLevel = setLogLevel
        self.flushLog = flushLog
    }
}

/// Reload, drain and restart of a whole server. Any thread.
package final class Operations: ServerOperations {
    private struct State {
        var isReloading = false
        var waiting: [ConfigChange.Setting] = []
        var reloadedAtMs: Int64?
        var reloadProblem: String?
        /// The sources of the settings in force, by setting.
        var origins: [String: ConfigOrigin]
    }

    private let parts: ServerParts
    private let certificate: CertificateStore?
    private let http: HTTPServerChannel.Shared
    private let sockets: ListeningSockets
    /// Nil when no service manager started this process.
    private let manager: ServiceManager?
    private let reloading: Reloading?
    private let drain: ServerDrain
    private let state: Mutex<State>
    private let restart = Mutex<ServerRestart?>(nil)

    init(
        _ parts: ServerParts, origins: [String: ConfigOrigin], certificate: CertificateStore?, http: HTTPServerChannel.Shared,
        sockets: ListeningSockets, manager: ServiceManager?, reloading: Reloading?
    ) {
        self.parts = parts
        self.state = Mutex(State(origins: origins))
        self.certificate = certificate
        self.http = http
        self.sockets = sockets
        self.manager = manager
        self.reloading = reloading
        self.drain = ServerDrain(
            parts.live, parts.streams, publishers: parts.connections.admission, sockets, log: parts.log,
            haveFinished: { [sessions = parts.playback.sessions, recordings = parts.recordings, pushes = parts.pushes] in
                // Links go on fetching.
                let live = Set(pushes.all.map(\.path.description.exact))
                return recordings.haveFinished(but: live) && sessions.haveFinished(but: live, nowMs: LoopSweeper.nowMs)
            })
    }

    // MARK: Drain

    package var drainState: DrainState? { self.drain.current }

    package func drain(_ request: DrainRequest, by who: String) async -> DrainStart {
        guard request.restarts, self.drain.current == nil else { return await self.drain.begin(request, by: who, isByCall: true) }
        let restart: ServerRestart
        do {
            // If the next program could not start, nothing would serve the clients.
            guard self.reloading != nil else { throw ValueProblem("this process is not the server's own") }
            let program = try NextProgram()
            try await DiskWork.run { Result { try self.rehearse(program) } }.get()
            restart = try await ServerRestart(program, self.sockets)
        } catch {
            let problems = "\(error)".split(separator: "\n").map(String.init)
            self.parts.log.error(
                "The server could not start again, so it goes on",
                metadata: ["by": "\(who)", "error": "\(problems.joined(separator: "; "))"])
            return .cannotRestart(problems)
        }
        let isFirst = self.restart.withLock { kept in
            defer { kept = kept ?? restart }
            return kept == nil
        }
        let start = await self.drain.begin(request, by: who, isByCall: true)
        if case .begun = start { return start }
        // Another drain came first. Take the kept restart out under the lock, because a signal may already have cancelled it.
        if isFirst { self.cancelRestart() } else { restart.cancel() }
        return start
    }

    /// What the next program does first, as far as it can be done beside this one: it checks its settings and loads certificate and keys; and the
    /// addresses that this one does not listen on are free. Blocks.
    private func rehearse(_ program: NextProgram) throws {
        try program.check(within: Self.checkSeconds)
        guard let config = try self.reloading?.read().config else { return }
        _ = try CertificateStore.pair(config.rtmps.files)
        _ = try KeyRing.load(config: config)
        let addresses: [(String, HostPort?)] = [
            ("rtmp", config.rtmp.listen), ("rtmps", config.rtmps.address), ("http", config.http.listen), ("https", config.httpsAddress),
        ]
        for case (let scheme, let address?) in addresses { try self.sockets.check(scheme, on: address) }
    }

    private func cancelRestart() {
        let restart = self.restart.withLock { kept in
            defer { kept = nil }
            return kept
        }
        restart?.cancel()
    }

    /// Long enough for a busy machine.
    private static let checkSeconds = 10

    /// A restart by signal, which has nobody to answer to.
    func restart(by who: String) async {
        guard case .alreadyUnderWay = await self.drain(DrainRequest(restarts: true), by: who) else { return }
        self.parts.log.warning("Draining already; this restart is left out", metadata: ["by": "\(who)"])
    }

    /// Ends the process, or starts the next program in it. Blocks.
    package func leave() {
        guard self.drain.current?.restarts == true, let restart = self.restart.withLock({ $0 }) else { exit(0) }
        self.parts.log.info("Starting again", metadata: ["program": "\(restart.program.path)"])
        self.reloading?.flushLog()
        let failure = restart.start()
        self.parts.log.critical("The program cannot be started", metadata: ["program": "\(restart.program.path)", "error": "\(failure)"])
        exit(1)
    }

    func signalled() async {
        // This signal ends the server instead of restarting it. Close the kept listeners, or new clients would wait for a program that never
        // starts.
        self.cancelRestart()
        await self.drain.signalled()
    }

    func follow(begun: @escaping @Sendable (_ ms: Int64, _ restarts: Bool) -> Void, over: @escaping @Sendable () async -> Void) {
        self.drain.follow(begun: begun, over: over)
    }

    package func problem() async -> String? { await self.parts.readiness.problem() }

    // MARK: Reload

    package var waitingSettings: [ConfigChange.Setting] { self.state.withLock { $0.waiting } }
    package var reloadedAtMs: Int64? { self.state.withLock { $0.reloadedAtMs } }
    package var reloadProblem: String? { self.state.withLock { $0.reloadProblem } }
    package var settings: [SettingInForce] { self.parts.config.settings(from: self.state.withLock { $0.origins }) }

    package func reload(by who: String) async -> Result<ReloadReport, ReloadRefusal> {
        let mayBegin = self.state.withLock { state in
            defer { state.isReloading = true }
            return !state.isReloading
        }
        guard mayBegin else { return .failure(.busy) }
        // A server that ends or starts again has told the manager so.
        if self.drain.current == nil { self.manager?.send([.reloadingNow]) }
        await self.reloading?.settle()
        let outcome = await DiskWork.run { self.reloadNow() }
        self.state.withLock { $0.isReloading = false }
        self.log(outcome, by: who)
        if self.drain.current == nil { self.manager?.send([.ready]) }
        return outcome
    }

    /// Reads and checks everything before anything is changed. Blocks.
    private func reloadNow() -> Result<ReloadReport, ReloadRefusal> {
        do {
            let loaded = try self.reloading?.read()
            let change = self.parts.config.adopting(loaded?.config ?? self.parts.config)
            let tls = self.certificate == nil ? nil : try CertificateStore.pair(change.config.rtmps.files)
            let keys = try KeyRing.load(config: change.config)
            self.parts.apply(change.config, keys)
            self.http.set(HTTPLimits(change.config), change.config.access)
            self.reloading?.setLogLevel(change.config.log.level)
            if let tls { self.certificate?.use(tls) }
            self.state.withLock { state in
                state.waiting = change.waiting
                state.reloadedAtMs = WallClock.ms
                state.reloadProblem = nil
                guard var origins = loaded?.origins else { return }
                // What waits for a restart has its former value.
                for path in change.waiting.map(\.path) { origins[path] = state.origins[path] }
                state.origins = origins
            }
            return .success(ReloadReport(change: change, hasCertificate: tls != nil, warnings: ConfigWarnings.of(change.config)))
        } catch {
            let lines = "\(error)".split(separator: "\n").map(String.init)
            self.state.withLock { $0.reloadProblem = lines.joined(separator: "; ") }
            return .failure(.mistakes(lines))
        }
    }

    private func log(_ outcome: Result<ReloadReport, ReloadRefusal>, by who: String) {
        let log = self.parts.log
        switch outcome {
        case .success(let report):
            var metadata: Logger.Metadata = ["by": "\(who)"]
            if !report.change.applied.isEmpty { metadata["applied"] = "\(Self.list(report.change.applied))" }
            if report.hasCertificate { metadata["certificate"] = "read again" }
            log.info(
                report.change.applied.isEmpty ? "Settings reloaded: none to apply has changed" : "Settings reloaded", metadata: metadata)
            if !report.change.waiting.isEmpty {
                log.warning(
                    "Changed settings need a restart; their former values stay",
                    metadata: ["settings": "\(Self.list(report.change.waiting))"])
            }
            for warning in report.warnings { log.warning("Settings: \(warning)") }
            if report.hasCertificate { self.certificate?.warn(log) }
        case .failure(.busy):
            log.warning("A reload is under way; this one is left out", metadata: ["by": "\(who)"])
        case .failure(.mistakes(let all)):
            log.error(
                "Settings not reloaded, the running ones stay", metadata: ["by": "\(who)", "error": "\(all.joined(separator: "; "))"])
        }
    }

    private static func list(_ settings: [ConfigChange.Setting]) -> String { settings.map(\.description).joined(separator: ", ") }
}
