// The dumbbell of `make bench` on ns-3: what it costs there to simulate the same network.
//
//   sender i -- access -- left router == bottleneck == right router -- access -- receiver i
//
// Bulk TCP flows with Linux's Reno and SACK send through three links each. The bottleneck's
// drop-tail queue is bounded in bytes; nothing else drops. No trace is connected except the one
// that counts data packets as they reach a receiver, and no header is printed or checked, so that
// what is measured is ns-3 at its fastest. Prints one JSON object with what it did and what that
// took.

#include "ns3/applications-module.h"
#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/network-module.h"
#include "ns3/point-to-point-module.h"

#include <cstdint>
#include <fstream>
#include <iostream>
#include <string>
#include <sys/resource.h>
#include <vector>

namespace
{

using namespace ns3;

constexpr uint32_t SEGMENT = 1448;        // payload of a 1500-byte packet with timestamps
constexpr uint32_t LARGEST_BARE_ACK = 82; // PPP 2, IPv4 20, TCP 60: anything longer carries data
constexpr uint16_t PORT = 5001;

struct Case
{
    uint32_t flows = 1;
    uint64_t rate = 100'000'000; // bit/s
    Time rtt = MilliSeconds(40);
    Time stagger = Seconds(0);
    Time duration = Seconds(60);

    uint64_t BdpBytes() const
    {
        return static_cast<uint64_t>(static_cast<double>(rate) * rtt.GetSeconds() / 8);
    }
};

struct Dumbbell
{
    NodeContainer senders;
    NodeContainer receivers;
    NodeContainer routers;
    NetDeviceContainer last_devices; // where packets reach their receiver
    std::vector<Ipv4Address> receiver_addresses;
};

uint64_t g_data_packets = 0;

void
CountData(Ptr<const Packet> packet)
{
    g_data_packets += packet->GetSize() > LARGEST_BARE_ACK;
}

Case
ReadCase(int argc, char** argv)
{
    Case c;
    CommandLine command(__FILE__);
    command.AddValue("flows", "number of flows", c.flows);
    command.AddValue("rate", "rate of the bottleneck, bit/s", c.rate);
    command.AddValue("rtt", "round trip without queues", c.rtt);
    command.AddValue("stagger", "time by which each flow starts after the one before", c.stagger);
    command.AddValue("duration", "simulated time", c.duration);
    command.Parse(argc, argv);
    return c;
}

// Buffers at both ends never limit: the path holds two bandwidth-delay products at most.
void
ConfigureTcp(const Case& c)
{
    const uint64_t buffer = 4 * c.BdpBytes() + 64 * SEGMENT;
    Config::SetDefault("ns3::TcpL4Protocol::SocketType", TypeIdValue(TcpLinuxReno::GetTypeId()));
    Config::SetDefault("ns3::TcpSocket::SegmentSize", UintegerValue(SEGMENT));
    Config::SetDefault("ns3::TcpSocket::SndBufSize", UintegerValue(buffer));
    Config::SetDefault("ns3::TcpSocket::RcvBufSize", UintegerValue(buffer));
    Config::SetDefault("ns3::TcpSocket::InitialCwnd", UintegerValue(10));
    Config::SetDefault("ns3::TcpSocket::DelAckCount", UintegerValue(2));
    Config::SetDefault("ns3::TcpSocket::DelAckTimeout", TimeValue(MilliSeconds(40)));
    Config::SetDefault("ns3::TcpSocketBase::Sack", BooleanValue(true));
    Config::SetDefault("ns3::TcpSocketBase::Timestamp", BooleanValue(true));
    Config::SetDefault("ns3::TcpSocketBase::MinRto", TimeValue(MilliSeconds(200)));
}

// Without flow control between device and traffic control, the device's queue is the only one.
PointToPointHelper
LinkOf(uint64_t rate, Time delay, uint64_t queue_bytes)
{
    PointToPointHelper link;
    link.SetDeviceAttribute("DataRate", DataRateValue(DataRate(rate)));
    link.SetChannelAttribute("Delay", TimeValue(delay));
    link.SetQueue("ns3::DropTailQueue<Packet>",
                  "MaxSize",
                  QueueSizeValue(QueueSize(QueueSizeUnit::BYTES, queue_bytes)));
    link.DisableFlowControl();
    return link;
}

Dumbbell
Build(const Case& c)
{
    Dumbbell net;
    net.senders.Create(c.flows);
    net.receivers.Create(c.flows);
    net.routers.Create(2);

    InternetStackHelper stack;
    Ipv4StaticRoutingHelper routing;
    stack.SetRoutingHelper(routing);
    stack.SetIpv6StackInstall(false);
    stack.InstallAll();
    const auto table = [&routing](Ptr<Node> node) {
        return routing.GetStaticRouting(node->GetObject<Ipv4>());
    };

    const auto [left, right] = std::pair(net.routers.Get(0), net.routers.Get(1));
    auto bottleneck = LinkOf(c.rate, c.rtt / 2, c.BdpBytes());
    auto access = LinkOf(10 * c.rate, Seconds(0), 16 * c.BdpBytes());
    Ipv4AddressHelper middle("10.0.0.0", "255.255.255.252");
    Ipv4AddressHelper left_nets("10.64.0.0", "255.255.255.252");
    Ipv4AddressHelper right_nets("10.128.0.0", "255.255.255.252");

    const auto crossing = middle.Assign(bottleneck.Install(net.routers));
    table(left)->AddNetworkRouteTo("10.128.0.0", "255.192.0.0", crossing.GetAddress(1), 1);
    table(right)->AddNetworkRouteTo("10.64.0.0", "255.192.0.0", crossing.GetAddress(0), 1);
    for (uint32_t i = 0; i < c.flows; ++i)
    {
        const auto near = left_nets.Assign(access.Install(net.senders.Get(i), left));
        const auto devices = access.Install(right, net.receivers.Get(i));
        const auto far = right_nets.Assign(devices);
        table(net.senders.Get(i))->SetDefaultRoute(near.GetAddress(1), 1);
        table(net.receivers.Get(i))->SetDefaultRoute(far.GetAddress(0), 1);
        net.last_devices.Add(devices.Get(1));
        net.receiver_addresses.push_back(far.GetAddress(1));
        left_nets.NewNetwork();
        right_nets.NewNetwork();
    }
    return net;
}

ApplicationContainer
StartFlows(const Case& c, const Dumbbell& net)
{
    PacketSinkHelper sink("ns3::TcpSocketFactory", InetSocketAddress(Ipv4Address::GetAny(), PORT));
    auto sinks = sink.Install(net.receivers);
    sinks.Start(Seconds(0));
    for (uint32_t i = 0; i < c.flows; ++i)
    {
        BulkSendHelper bulk("ns3::TcpSocketFactory",
                            InetSocketAddress(net.receiver_addresses[i], PORT));
        bulk.SetAttribute("SendSize", UintegerValue(SEGMENT));
        bulk.Install(net.senders.Get(i)).Start(c.stagger * static_cast<int64_t>(i));
        net.last_devices.Get(i)->TraceConnectWithoutContext("MacRx", MakeCallback(&CountData));
    }
    return sinks;
}

// The most memory that this process has held. On Linux, getrusage also counts what the process was
// before it became this program.
double
PeakMib()
{
    std::ifstream status("/proc/self/status");
    for (std::string word; status >> word;)
    {
        double kib = 0;
        if (word == "VmHWM:" && status >> kib)
        {
            return kib / 1024;
        }
    }
    return 0;
}

void
Report(const Case& c, const ApplicationContainer& sinks)
{
    uint64_t delivered = 0;
    for (auto sink = sinks.Begin(); sink != sinks.End(); ++sink)
    {
        delivered += DynamicCast<PacketSink>(*sink)->GetTotalRx();
    }
    rusage used{};
    getrusage(RUSAGE_SELF, &used);
    const auto seconds = [](timeval t) { return t.tv_sec + 1e-6 * t.tv_usec; };
    std::cout << "{\"sim_s\": " << c.duration.GetSeconds()
              << ", \"events\": " << Simulator::GetEventCount()
              << ", \"data_packets\": " << g_data_packets
              << ", \"goodput_mbps\": " << delivered * 8e-6 / c.duration.GetSeconds()
              << ", \"cpu_s\": " << seconds(used.ru_utime) + seconds(used.ru_stime)
              << ", \"peak_mib\": " << PeakMib() << "}\n";
}

} // namespace

int
main(int argc, char** argv)
{
    const Case c = ReadCase(argc, argv);
    ConfigureTcp(c);
    const Dumbbell net = Build(c);
    const ApplicationContainer sinks = StartFlows(c, net);
    Simulator::Stop(c.duration);
    Simulator::Run();
    Report(c, sinks);
    Simulator::Destroy();
    return 0;
}
