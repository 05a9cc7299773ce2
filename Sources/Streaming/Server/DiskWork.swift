import NIOPosix

/// Blocking disk work, on a thread of the process's pool.
package enum DiskWork {
    package static func run<Value: Sendable>(_ body: @escaping @Sendable () -> Value) async -> Value {
        do {
            return try await NIOThreadPool.singleton.runIfActive(body)
        } catch {
            // The process's thread pool never shuts down, so this cannot fail.
            return body()
        }
    }
}
