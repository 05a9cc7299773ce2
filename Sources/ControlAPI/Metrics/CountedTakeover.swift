package import HTTPServer
import HTTPTypes
package import NIOHTTP1
package import Support

/// Counts the answers of a takeover by route, as ``APIRouter`` counts those of the others.
package struct CountedTakeover: HTTPTakeover {
    let takeover: any HTTPTakeover
    let requests: RequestFigures

    package static func all(_ takeovers: [any HTTPTakeover], _ requests: RequestFigures) -> [any HTTPTakeover] {
        takeovers.map { CountedTakeover(takeover: $0, requests: requests) }
    }

    package func door(_ head: HTTPRequestHead) -> Door? { self.takeover.door(head) }
    package func route(_ head: HTTPRequestHead) -> String { self.takeover.route(head) }

    package func decide(_ request: HTTPTakeoverRequest) async -> HTTPTakeoverDecision {
        let began = ContinuousClock.now
        let decision = await self.takeover.decide(request)
        let status: HTTPResponse.Status =
            switch decision {
            case .accept(let head, _): .init(code: Int(head.status.code))
            case .refuse(let error): error.status
            }
        self.requests.answered(self.route(request.head), .get, status, after: ContinuousClock.now - began)
        return decision
    }
}
