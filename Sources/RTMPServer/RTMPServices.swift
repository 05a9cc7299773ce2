import Access
import Logging
import Rooms
package import ServerConfiguration
package import Streaming
package import Support

/// The services that RTMP connections use. Any thread.
package final class RTMPServices: Sendable {
    let config: Live<ServerConfig>
    let streams: LiveStreams
    let connections: Connections
    let admission: RoomAdmission
    let talk: any TalkGateway

    package init(
        _ config: Live<ServerConfig>, _ streams: LiveStreams, _ connections: Connections, _ admission: RoomAdmission,
        _ talk: any TalkGateway
    ) {
        self.config = config
        self.streams = streams
        self.connections = connections
        self.admission = admission
        self.talk = talk
    }

    var rooms: any LiveRooms { self.admission.rooms }
    var rules: AdmissionRules { self.admission.rules }
    var memory: MemoryBudget { self.admission.memory }
    var log: Logger { self.connections.log }
}
