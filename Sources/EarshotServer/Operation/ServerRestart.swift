import LibC
import Listening
import Support

/// The start of the next program in this process, once the server has ended. Its listeners stay open from before the end to after the start.
struct ServerRestart: Sendable {
    let program: NextProgram
    private let listeners: [(scheme: String, descriptor: CInt)]

    /// Throws when no descriptor is left.
    init(_ program: NextProgram, _ sockets: ListeningSockets) async throws {
        self.program = program
        self.listeners = try await sockets.kept()
    }

    /// Gives the listeners up.
    func cancel() { for (_, descriptor) in self.listeners { close(descriptor) } }

    /// Returns only when the program cannot be started, with the reason.
    func start() -> String {
        let failure = self.program.start(passing: self.listeners.map(\.descriptor), environment: InheritedSockets.kept(self.listeners))
        return String(cString: strerror(failure))
    }
}
