import HTTPTypes
import Hummingbird
import Logging
package import NIOCore
package import ServiceLifecycle
import Synchronization

/// The HTTP side as a service: health checks and the API. Binds once, reports its port, runs until the group shuts down.
package final class HTTPService: Service, Sendable {
    private let core: ServerCore
    private let address: HostPort
    private let group: any EventLoopGroup
    private let log: Logger
    private let running = Mutex<Task<Void, any Error>?>(nil)
    private let bound: EventLoopPromise<Int>

    init(core: ServerCore, address: HostPort, group: any EventLoopGroup, log: Logger) {
        self.core = core
        self.address = address
        self.group = group
        self.log = log
        self.bound = group.any().makePromise(of: Int.self)
    }

    /// Hummingbird binds as it runs: its task starts here and is joined by `run`.
    func bind() async throws -> HostPort {
        let bound = self.bound
        let address = self.address
        var quiet = self.log
        if self.log.logLevel > .debug { quiet.logLevel = .warning }
        let application = Application(
            router: APIRouter(core: self.core).router(),
            configuration: .init(address: .hostname(address.host, port: address.port), serverName: "earshot"),
            onServerRunning: { channel in bound.succeed(channel.localAddress?.port ?? address.port) },
            eventLoopGroupProvider: .shared(self.group), logger: quiet)
        let group = ServiceGroup(configuration: .init(services: [application], logger: quiet))
        self.group0.withLock { $0 = group }
        let task = Task {
            do {
                try await group.run()
            } catch {
                bound.fail(ListenError(scheme: "http", address: address, cause: error))
                throw error
            }
        }
        self.running.withLock { $0 = task }
        return HostPort(host: address.host, port: try await bound.futureResult.get())
    }

    private let group0 = Mutex<ServiceGroup?>(nil)

    package func run() async throws {
        let task = self.running.withLock { $0 }
        let group = self.group0.withLock { $0 }
        try await withGracefulShutdownHandler {
            try await task?.value
        } onGracefulShutdown: {
            Task { await group?.triggerGracefulShutdown() }
        }
    }
}
