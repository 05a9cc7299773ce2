import Access
import Logging
import RTMP
import Rooms
package import ServerConfiguration
package import Streaming
package import Support
import Synchronization

/// The services that RTMP connections use. Any thread.
package final class RTMPServices: Sendable {
    let config: Live<ServerConfig>
    let streams: LiveStreams
    let connections: Connections
    let admission: RoomAdmission
    let talk: any TalkGateway
    /// What was last made of the settings.
    private let newestLimits: Mutex<(settings: ServerConfig.Limits, shared: SharedLimits)>

    package init(
        _ config: Live<ServerConfig>, _ streams: LiveStreams, _ connections: Connections, _ admission: RoomAdmission,
        _ talk: any TalkGateway
    ) {
        self.config = config
        self.streams = streams
        self.connections = connections
        self.admission = admission
        self.talk = talk
        let settings = config.limits
        self.newestLimits = Mutex((settings, SharedLimits(RTMP.Limits(settings))))
    }

    /// The limits of a new connection.
    var limits: SharedLimits {
        let settings = self.config.limits
        return self.newestLimits.withLock { newest in
            if newest.settings != settings { newest = (settings, SharedLimits(RTMP.Limits(settings))) }
            return newest.shared
        }
    }

    var rooms: any LiveRooms { self.admission.rooms }
    var rules: AdmissionRules { self.admission.rules }
    var memory: MemoryBudget { self.admission.memory }
    var log: Logger { self.connections.log }
}
