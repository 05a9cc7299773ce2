import Hummingbird
import Logging
import NIOCore

/// A request's context: its connection and its id.
struct APIContext: RequestContext {
    var coreContext: CoreRequestContextStorage
    /// To be closed when a body does not come to its end. Whose it is, ``ClientAddresses`` knows.
    let channel: any Channel

    init(source: ApplicationRequestContextSource) {
        self.coreContext = .init(source: source)
        self.channel = source.channel
    }
}
