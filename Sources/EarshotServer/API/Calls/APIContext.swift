import Hummingbird
import Logging
import NIOCore

/// A request's context: its connection and its id.
struct APIContext: RequestContext {
    var coreContext: CoreRequestContextStorage
    /// Gets ``HTTPBodyWanted`` when a body is read. ``ClientAddresses`` knows its peer.
    let channel: any Channel

    init(source: ApplicationRequestContextSource) {
        self.coreContext = .init(source: source)
        self.channel = source.channel
    }
}
