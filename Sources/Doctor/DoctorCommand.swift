package import ArgumentParser
import CommandSupport
import Dispatch
import LibC
import ServerConfiguration
import Support

/// `earshot doctor`: tries every function of a server, and examines its machine.
package struct DoctorCommand: AsyncParsableCommand {
    package static let configuration = CommandConfiguration(
        commandName: "doctor",
        abstract: "Try a server from end to end, look at its machine and settings, and say what to do.",
        discussion: """
            Without --server it looks at this machine: settings, files, disk, limits, kernel, clock, certificates, ports; and at the server \
            that runs here with these settings. With --server it looks at that server only, from here.

            It makes a room, pushes a small stream of its own, plays it over every protocol, records it, takes a picture, talks, and \
            listens for a webhook; then it removes all of that. What is recorded as deleted, and the audit, stay. It needs a token of role \
            ops or admin; a lesser one leaves things out, and it says which.

            EXAMPLES
              earshot doctor --config /etc/earshot/earshot.yaml
              earshot doctor --server https://live.example.com --token-file ops.token --json

            EXIT STATUS
              0   nothing failed
              1   something failed
              2   the server cannot be reached, or the doctor was interrupted
              64  mistake in the command line
            """)
    @Option(help: ArgumentHelp("The settings of the server on this machine.", valueName: "FILE"))
    var config: String?
    @OptionGroup var options: ServerOptions

    /// The exit status when the examination could not be made.
    private static let couldNotRun: Int32 = 2

    package init() {}

    package func validate() throws {
        guard self.config == nil || !self.isRemote else {
            throw ValidationError("--config is for the server on this machine; leave --server out.")
        }
    }

    private var isRemote: Bool { self.options.server != nil || Console.variable("EARSHOT_SERVER").map { !$0.isEmpty } ?? false }

    package func run() async throws {
        Console.ignoreClosedPipes()
        let work = Task { try await self.examine() }
        let signals = [SIGINT, SIGTERM].map { number in
            signal(number, SIG_IGN)
            let source = DispatchSource.makeSignalSource(signal: number, queue: .global())
            source.setEventHandler { work.cancel() }
            source.resume()
            return source
        }
        defer { signals.forEach { $0.cancel() } }
        let failed: Int
        do {
            failed = try await work.value
        } catch let failure as CommandFailure {
            Console.complain("earshot: \(failure.message)")
            throw ExitCode(Self.couldNotRun)
        } catch is Console.ReaderGone {
            throw ExitCode.success
        }
        guard !work.isCancelled else {
            Console.complain("earshot: interrupted; what was made on the server is removed")
            throw ExitCode(Self.couldNotRun)
        }
        if failed > 0 { throw ExitCode(1) }
    }

    /// Returns the number of failures.
    private func examine() async throws -> Int {
        let clock = ContinuousClock()
        let start = clock.now
        var report = DoctorReport(form: self.options.json ? .json : self.options.quiet ? .names : .lines)
        let http = DoctorHTTP()
        do {
            if self.isRemote {
                try await LiveChecks(api: self.options.client(), http: http, local: nil).run(&report)
            } else {
                try await self.examineMachine(&report, http)
            }
        } catch {
            await http.shutdown()
            throw error
        }
        await http.shutdown()
        let subject = self.isRemote ? "\(try self.options.address())" : "this machine"
        if !Task.isCancelled { try report.finish(subject: subject, seconds: (clock.now - start) / .seconds(1)) }
        return report.count(.fail)
    }

    private func examineMachine(_ report: inout DoctorReport, _ http: DoctorHTTP) async throws {
        report.progress("settings")
        let (config, results) = await BlockingThread.run { self.settings() }
        try report.add(results)
        let subject = await BlockingThread.run { LocalSubject(config: config, file: self.config) }
        for check in MachineChecks.all(subject) {
            guard !Task.isCancelled else { return }
            report.progress(check.name)
            try report.add(await check.run())
        }
        let address = (subject.running(.http) ?? config.http.listen).reachable
        guard subject.isRunning else {
            let why = "no server uses \(subject.directory); left out: pushing, playing, recording, talk, webhooks"
            let advice = "start it (earshot serve), or name its data directory (--data) or its address (--server)"
            // A server that has run here is expected to run; on a new machine the doctor comes first.
            return try report.add([subject.hasStore ? .fail("server", why, advice) : .skip("server", why, advice)])
        }
        guard address.port != 0 else {
            return try report.add([.skip("server", "it listens on a port of the system's choice", "name its address with --server")])
        }
        guard let server = ServerAddress(argument: "http://\(address)") else { return }
        var directory = self.options.directory
        directory.data = subject.directory
        let api = try self.options.client(for: server, dataDirectory: directory)
        do {
            try await LiveChecks(api: api, http: http, local: subject).run(&report)
        } catch let failure as CommandFailure where failure.status == .unreachable {
            try report.add([
                .fail("health", failure.message, "a server holds \(subject.directory), but does not answer: see its log, and restart it")
            ])
        }
    }

    /// The settings as the server would read them; the defaults when they have mistakes.
    private func settings() -> (ServerConfig, [DoctorResult]) {
        let name = "settings"
        do {
            let loaded = try SettingsOptions.load(file: self.config, flags: ["data.directory": self.options.directory.data])
            return (loaded.config, [.pass(name, self.config ?? "defaults and environment")])
        } catch {
            var config = ServerConfig()
            config.data.directory = self.options.directory.path
            let words = "\((error as? ConfigFailure)?.error.description ?? "\(error)")".split(separator: "\n").joined(separator: "; ")
            return (config, [.fail(name, words, "earshot config check shows the same; the rest is looked at with the defaults")])
        }
    }
}

/// The checks of this machine, in the order of their lines.
enum MachineChecks {
    static func all(_ subject: LocalSubject) -> [DoctorCheck] {
        [
            .blocking("libraries") { LibraryCheck.run() },
            .blocking("access") { AccessChecks.judge(subject.config) },
            .blocking("files") { FileChecks.run(subject) },
            .blocking("disk") { DiskChecks.run(subject) },
            .blocking("database") { DatabaseCheck.run(subject) },
            .blocking("store") { StoreCheck.run(subject) },
            .blocking("open files") { DescriptorCheck.run(subject) },
            .blocking("kernel") { KernelCheck.run() },
            .blocking("clock") { ClockCheck.run(subject) },
            .blocking("certificate") { CertificateChecks.run(subject) },
            DoctorCheck(name: "ports") { await PortChecks.run(subject) },
            DoctorCheck(name: "targets") { await TargetCheck.run(subject.config) },
        ]
    }
}
