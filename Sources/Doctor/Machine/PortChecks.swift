import CommandSupport
import LibC
import NIOCore
import NIOPosix
import Support

/// The ports of the settings: free while no server runs, served while one does, where it says that it listens.
enum PortChecks {
    static func run(_ subject: LocalSubject) async -> [DoctorResult] {
        var results: [DoctorResult] = []
        for listener in LocalSubject.Listener.allCases {
            let name = "port \(listener.rawValue)"
            if let running = subject.running(listener) {
                results.append(self.compared(await self.served(name, running), running, subject.configured(listener)))
                continue
            }
            guard let address = subject.configured(listener) else { continue }
            if address.port == 0 {
                results.append(.skip(name, "\(address): the system chooses it at each start"))
            } else if subject.isRunning {
                results.append(await self.served(name, address))
            } else {
                results.append(await self.free(name, address))
            }
        }
        return results
    }

    /// Hosts are not compared: the settings may have a name, of which the server tells the address.
    static func compared(_ result: DoctorResult, _ running: HostPort, _ configured: HostPort?) -> DoctorResult {
        guard result.status == .pass, configured?.port != running.port, configured?.port != 0 else { return result }
        let settings = configured.map { "say \($0)" } ?? "switch it off"
        return .warn(
            result.name, "\(running) is served, but the settings \(settings)", "restart the server for them to hold, or correct them")
    }

    private static func served(_ name: String, _ address: HostPort) async -> DoctorResult {
        if let why = await Self.whyNoConnection(address.reachable) {
            return .fail(
                name, "the server runs, but \(address.reachable) does not answer: \(why)",
                "was the server started with these settings? Restart it")
        }
        return .pass(name, "\(address) is served")
    }

    private static func free(_ name: String, _ address: HostPort) async -> DoctorResult {
        do {
            // SO_REUSEADDR, as the server uses it: a port whose old connections are in TIME_WAIT is free.
            let channel = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
                .serverChannelOption(.socketOption(.so_reuseaddr), value: 1).bind(host: address.host, port: address.port).get()
            try await channel.close()
            return .pass(name, "\(address) is free")
        } catch let error as IOError {
            let why = Console.explain(error.errnoCode)
            switch error.errnoCode {
            case EADDRINUSE:
                let owner = await BlockingThread.run { PortOwner.find(address.port) }.map { ", by \($0)" } ?? ""
                return .fail(name, "\(address) is taken\(owner)", "end the other program (ss -ltnp names it), or set another address")
            case EACCES: return .fail(name, "\(address): \(why)", "ports below 1024 need CAP_NET_BIND_SERVICE; take another one")
            case EADDRNOTAVAIL:
                return .fail(name, "\(address) is not an address of this machine", "ip address lists them; 0.0.0.0 means all")
            default: return .fail(name, "\(address): \(why)", "set another address")
            }
        } catch {
            return .fail(name, "\(address): \(error)", "set another address")
        }
    }

    /// The reason why a connection fails; nil when something accepts it.
    static func whyNoConnection(_ address: HostPort, within seconds: Int64 = 3) async -> String? {
        do {
            let channel = try await ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton).connectTimeout(.seconds(seconds))
                .connect(host: address.host, port: address.port).get()
            // The check is done; an error while closing does not matter.
            channel.close(promise: nil)
            return nil
        } catch {
            return ConnectFailure.words(error)
        }
    }
}

extension HostPort {
    /// The loopback address in place of a wildcard, which works on this machine.
    var reachable: HostPort {
        switch self.host {
        case "0.0.0.0": HostPort(host: "127.0.0.1", port: self.port)
        case "::": HostPort(host: "::1", port: self.port)
        default: self
        }
    }
}

/// Why a connection could not be made, in a few words.
enum ConnectFailure {
    static func words(_ error: any Error) -> String {
        switch error {
        case let error as NIOConnectionError:
            if let first = error.connectionErrors.first { return self.words(first.error) }
            return "no such host"
        case let error as IOError: return Console.explain(error.errnoCode)
        case let error as ChannelError:
            if case .connectTimeout = error { return "no answer in time" }
            return "the connection was closed"
        case is SocketAddressError: return "no such host"
        default: return DisplayText.escaped("\(error)")
        }
    }
}

/// The program that listens on a port, as far as this user may see. Blocks.
enum PortOwner {
    /// "nginx (process 812)"; nil when it cannot be determined.
    static func find(_ port: Int) -> String? {
        let inodes = ["/proc/net/tcp", "/proc/net/tcp6"].flatMap { self.listening(port, SmallFile.text($0) ?? "") }
        guard !inodes.isEmpty, let processes = opendir("/proc") else { return nil }
        defer { closedir(processes) }
        while let entry = readdir(processes) {
            let name = withUnsafeBytes(of: entry.pointee.d_name) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) }
            guard Int(name) != nil, self.holds(name, inodes) else { continue }
            let program = SmallFile.text("/proc/\(name)/comm")?.split(separator: "\n").first.map(String.init) ?? "?"
            return "\(program) (process \(name))"
        }
        return nil
    }

    /// Inodes of sockets in state 0A, LISTEN, with this local port in hexadecimal digits (proc(5)).
    private static func listening(_ port: Int, _ table: String) -> [String] {
        table.split(separator: "\n").dropFirst().compactMap { line in
            let words = line.split(separator: " ")
            guard words.count > 9, words[3] == "0A", let local = words[1].split(separator: ":").last, Int(local, radix: 16) == port else {
                return nil
            }
            return String(words[9])
        }
    }

    private static func holds(_ process: String, _ inodes: [String]) -> Bool {
        let folder = "/proc/\(process)/fd"
        guard let files = opendir(folder) else { return false }
        defer { closedir(files) }
        let wanted = Set(inodes.map { "socket:[\($0)]" })
        var target = [CChar](repeating: 0, count: 64)
        while let entry = readdir(files) {
            let name = withUnsafeBytes(of: entry.pointee.d_name) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) }
            let count = readlink("\(folder)/\(name)", &target, target.count)
            if count > 0, wanted.contains(String(decoding: target[..<count].map(UInt8.init(bitPattern:)), as: UTF8.self)) { return true }
        }
        return false
    }
}
